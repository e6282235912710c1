// Generates sdk/src/api.ts, the types of the API, from the served descriptions. The test
// test/sdk/types.test.ts compares the file, and writes it with TRANCHE_WRITE_TYPES=1.

type Schema = {
  $ref?: string;
  type?: string;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  description?: string;
};

type Content = { content: { 'application/json': { schema: Schema } } };

type Description = {
  paths: Record<string, Record<string, { requestBody?: Content; responses: { 200: Content } }>>;
  components: { schemas: Record<string, Schema> };
};

const widest = 100;

/** Names that already mean something else in JavaScript. */
const renamed: Record<string, string> = { Error: 'ErrorObject' };

export function writeTypes(merchants: Description, intermediaries: Description): string {
  const names = new Map<string, string>();
  const parts: string[] = [];
  const declare = (name: string, schema: Schema) => {
    parts.push(`${comment(schema, '')}export type ${name} = ${write(schema, '', names)};`);
  };
  for (const name of Object.keys(merchants.components.schemas)) {
    names.set(name, renamed[name] ?? name);
  }
  for (const [name, schema] of Object.entries(merchants.components.schemas)) {
    declare(names.get(name) ?? name, schema);
  }
  // An intermediary's request that differs gets its own name.
  const others = new Map(names);
  for (const [name, schema] of Object.entries(intermediaries.components.schemas)) {
    if (JSON.stringify(schema) === JSON.stringify(merchants.components.schemas[name])) continue;
    others.set(name, `Intermediary${name}`);
    declare(`Intermediary${name}`, schema);
  }
  parts.push(
    writeEndpoints('Endpoints', 'The request and the answer of each endpoint.', merchants, names),
  );
  parts.push(
    writeEndpoints(
      'IntermediaryEndpoints',
      'The request and the answer of each endpoint for an intermediary.',
      intermediaries,
      others,
    ),
  );
  return `// Written by sdk/generate-types.ts from the descriptions that the service gives of itself.\n\n${parts.join('\n\n')}\n`;
}

function writeEndpoints(
  name: string,
  about: string,
  { paths }: Description,
  names: Map<string, string>,
): string {
  const lines = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { requestBody, responses }]) => {
      const body = requestBody
        ? write(requestBody.content['application/json'].schema, '    ', names)
        : 'null';
      const answer = write(responses[200].content['application/json'].schema, '    ', names);
      return `  '${method.toUpperCase()} ${path}': {\n    body: ${body};\n    answer: ${answer};\n  };`;
    }),
  );
  return `/** ${about} */\nexport type ${name} = {\n${lines.join('\n')}\n};`;
}

function comment({ description }: Schema, indent: string): string {
  return description === undefined ? '' : `${indent}/** ${description} */\n`;
}

function write(schema: Schema, indent: string, names: Map<string, string>): string {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.replace('#/components/schemas/', '');
    return names.get(name) ?? name;
  }
  if (schema.const !== undefined) return literal(schema.const);
  if (schema.enum) return schema.enum.map(literal).join(' | ');
  if (schema.anyOf) return schema.anyOf.map((one) => write(one, indent, names)).join(' | ');
  switch (schema.type) {
    case 'string':
    case 'boolean':
    case 'null':
      return schema.type;
    case 'integer':
    case 'number':
      return 'number';
    case 'array':
      return `${write(schema.items ?? {}, indent, names)}[]`;
    case 'object':
      return writeObject(schema, indent, names);
    default:
      throw new Error(`A schema that has no type yet: ${JSON.stringify(schema)}`);
  }
}

function writeObject(schema: Schema, indent: string, names: Map<string, string>): string {
  const inner = `${indent}  `;
  const lines = Object.entries(schema.properties ?? {}).map(([name, property]) => {
    const isRequired = schema.required?.includes(name);
    const type = write(property, inner, names);
    const member = `${inner}${name}${isRequired ? '' : '?'}:`;
    const line = `${member} ${type}${isRequired ? '' : ' | undefined'};`;
    const isLong = line.length > widest && !type.includes('\n');
    const broken = `${member}\n${inner}  | ${type.replaceAll(' | ', `\n${inner}  | `)};`;
    return `${comment(property, inner)}${isLong ? broken : line}`;
  });
  return `{\n${lines.join('\n')}\n${indent}}`;
}

function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : String(value);
}
