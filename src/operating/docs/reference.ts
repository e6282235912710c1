import assert from 'node:assert/strict';
import type { Audience, Json, JsonObject, OpenApiDocument } from '#platform/http/openapi.ts';
import type { RequestSample } from '#platform/http/request-samples.ts';
import { escapeHtml } from '#platform/shared/html.ts';
import { renderCode, renderLine, renderMarkdown, slug } from './markdown.ts';
import { type Site, writePage } from './page.ts';

type About = { audience: Audience; documentPath: string };

type Entry = { operation: JsonObject; method: string; path: string };

/** The reference for people: one page, rendered from the OpenAPI document. */
export function writeReference(site: Site, document: OpenApiDocument, about: About): string {
  const groups = groupsOf(document);
  const chapters = chaptersOf(document);
  const isForMerchants = about.audience === 'merchants';
  return writePage(site, {
    title: `API reference for ${about.audience}`,
    part: '/docs',
    contentsTitle: 'Contents',
    contents: `<p>Basics</p>
<ul>${chapters.map(({ id, title }) => `<li><a href="#${id}">${escapeHtml(title)}</a></li>`).join('')}</ul>
${groups.map(renderContents).join('\n')}
<p>For programs</p>
<ul><li><a href="${about.documentPath}">OpenAPI 3.1 (JSON)</a></li><li><a href="/docs/api/v1">Legacy v1 (JSON)</a></li></ul>`,
    main: `<div class="title">
<h1>${isForMerchants ? 'Merchant API' : 'Intermediary API'} <small>${document.info.version}</small></h1>
<div class="switch" role="group" aria-label="Who you are">
${switchLink('/docs', 'Merchants', isForMerchants)}
${switchLink('/docs/intermediary', 'Intermediaries', !isForMerchants)}
</div>
</div>
<section class="guide">${renderMarkdown(document.info.description)}</section>
${groups.map((group) => renderGroup(document, group)).join('\n')}`,
  });
}

export function chaptersOf(document: OpenApiDocument): { id: string; title: string }[] {
  const titles = document.info.description.matchAll(/^## (.+)$/gm);
  return [...titles].map(([, title = '']) => ({ title, id: slug(title) }));
}

export function groupsOf(document: OpenApiDocument) {
  const entries: Entry[] = [
    ...Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
    ),
    ...Object.values(document.webhooks).map(({ post }) => ({
      method: 'post',
      path: (post.tags as string[]).includes('Events') ? 'your address for events' : 'notify_url',
      operation: post,
    })),
  ];
  return document.tags.map((tag) => ({
    ...tag,
    entries: entries.filter(({ operation }) => (operation.tags as string[]).includes(tag.name)),
  }));
}

function switchLink(href: string, text: string, isHere: boolean): string {
  return `<a href="${href}"${isHere ? ' aria-current="page"' : ''}>${text}</a>`;
}

function renderContents({ name, entries }: { name: string; entries: Entry[] }): string {
  const items = entries.map(
    ({ operation, method }) =>
      `<li><a href="#${operation.operationId}">${escapeHtml(String(operation.summary))} <span class="method ${method}">${method.toUpperCase()}</span></a></li>`,
  );
  return `<p>${escapeHtml(name)}</p>\n<ul>${items.join('')}</ul>`;
}

function renderGroup(
  document: OpenApiDocument,
  { name, description, entries }: { name: string; description: string; entries: Entry[] },
): string {
  return `<section class="group" aria-labelledby="tag-${slug(name)}">
<h2 id="tag-${slug(name)}">${escapeHtml(name)}</h2>
${renderMarkdown(description)}
${entries.map((entry) => renderOperation(document, entry)).join('\n')}
</section>`;
}

function renderOperation(document: OpenApiDocument, { operation, method, path }: Entry): string {
  const parameters = ((operation.parameters ?? []) as JsonObject[]).map((one) =>
    resolve(document, one),
  );
  const samples = (operation['x-codeSamples'] ?? []) as RequestSample[];
  const body = operation.requestBody as JsonObject | undefined;
  const responses = Object.entries(operation.responses as JsonObject).sort(([a], [b]) =>
    a.localeCompare(b),
  );
  const [, success] = responses[0] ?? [];
  const answered = success ? contentOf(success as JsonObject) : null;
  const sent = body ? contentOf(body) : null;

  return `<article id="${operation.operationId}">
<h3>${escapeHtml(String(operation.summary))}</h3>
<p class="endpoint"><span class="method ${method}">${method.toUpperCase()}</span> <code>${escapeHtml(path).replace(/\//g, '/<wbr>')}</code></p>
<div class="columns">
<div class="words">
${renderMarkdown(String(operation.description))}
${renderFields('Parameters', parameters.map(parameterField))}
${sent ? renderFields('Body', listFields(document, sent.schema, '')) : ''}
${answered ? renderFields('Answer', listFields(document, answered.schema, '').map(given)) : ''}
</div>
<div class="samples">
${renderSamples(samples)}
${samples.length === 0 && sent ? renderCode(pretty(sent.example), 'What you receive', 'json') : ''}
${answered ? renderCode(pretty(answered.example), samples.length > 0 ? 'Answer' : 'What you may answer', 'json') : ''}
</div>
</div>
<h4>Answers</h4>
<div class="answers">${responses.map(([status, one]) => renderAnswer(document, status, one as JsonObject)).join('\n')}</div>
</article>`;
}

const fileTypes: Record<string, string> = {
  Shell: 'sh',
  JavaScript: 'js',
  PHP: 'php',
  Python: 'py',
  Ruby: 'rb',
  Java: 'java',
  Go: 'go',
  'C#': 'cs',
};

/** Tabs. The first is open before the page's script runs, so that the page does not jump. */
function renderSamples(samples: RequestSample[]): string {
  if (samples.length === 0) return '';
  const figures = samples.map(({ lang, label, source }) =>
    renderCode(source, label, fileTypes[lang]),
  );
  const [first, ...others] = figures;
  const hidden = others.map((figure) => figure.replace('<figure ', '<figure hidden '));
  return `<div class="tabs" role="group" aria-label="Request">${[first, ...hidden].join('\n')}</div>`;
}

function renderAnswer(document: OpenApiDocument, status: string, unresolved: JsonObject): string {
  const response = resolve(document, unresolved);
  const content = contentOf(response);
  const summary = `<span class="status s${status[0]}">${status}</span> <span>${renderLine(String(response.description))}</span>`;
  if (!content) return `<p class="answer">${summary}</p>`;
  const examples = content.examples ?? { '': { value: content.example } };
  const headers = Object.keys((response.headers ?? {}) as JsonObject).map(
    (name) => `<code>${escapeHtml(name)}</code>`,
  );
  return `<details class="answer"><summary>${summary}</summary>
${headers.length > 0 ? `<p class="headers">Headers: ${headers.join(', ')}</p>` : ''}
${Object.entries(examples)
  .map(([name, example]) =>
    renderCode(pretty((example as JsonObject).value), asTitle(name), 'json'),
  )
  .join('\n')}
</details>`;
}

/** `wrong_signature` → `Wrong signature` */
function asTitle(name: string): string {
  return name.replaceAll('_', ' ').replace(/^./, (letter) => letter.toUpperCase());
}

type Field = { name: string; facts: string[]; required: boolean; description: string };

function renderFields(title: string, fields: Field[]): string {
  if (fields.length === 0) return '';
  const rows = fields.map(
    ({ name, facts, required, description }) => `<div class="field">
<dt><code class="name">${escapeHtml(name).replace(/([._\]])/g, '$1<wbr>')}</code> <span class="facts">${facts.map(escapeHtml).join(', ')}</span>${required ? ' <span class="required">required</span>' : ''}</dt>
<dd>${renderLine(description)}</dd>
</div>`,
  );
  return `<h4>${title}</h4><dl>${rows.join('\n')}</dl>`;
}

/** Drops `required`, which does not matter to the reader of a response. */
function given(field: Field): Field {
  return { ...field, required: false };
}

function parameterField(parameter: JsonObject): Field {
  return {
    name: String(parameter.name),
    facts: [String(parameter.in), ...describeType(parameter.schema as JsonObject)],
    required: parameter.required === true,
    description: String(parameter.description ?? ''),
  };
}

/** Every member by its path, spelt as in error details: `checkout.line_items[].amount`. */
function listFields(document: OpenApiDocument, node: JsonObject, path: string): Field[] {
  const schema = resolve(document, node);
  if (schema.type === 'array') {
    return listFields(document, schema.items as JsonObject, `${path}[]`);
  }
  const required = (schema.required ?? []) as string[];
  return Object.entries((schema.properties ?? {}) as JsonObject).flatMap(([name, property]) => {
    const member = resolve(document, property as JsonObject);
    const memberPath = path === '' ? name : `${path}.${name}`;
    const inner = listFields(document, property as JsonObject, memberPath);
    // An object without a description is not listed itself, because its members are.
    const isPlainWrapper = inner.length > 0 && member.type === 'object' && !member.description;
    const own: Field = {
      name: memberPath,
      facts: describeType(member),
      required: required.includes(name),
      description: String(member.description ?? ''),
    };
    return isPlainWrapper ? inner : [own, ...inner];
  });
}

function describeType(schema: JsonObject): string[] {
  const facts: string[] = [];
  const choices = schema.anyOf as JsonObject[] | undefined;
  if (choices) {
    facts.push(choices.map((choice) => choice.format ?? choice.type).join(' or '));
  } else if (schema.const !== undefined) {
    facts.push(JSON.stringify(schema.const));
  } else if (schema.enum) {
    facts.push((schema.enum as string[]).join(' | '));
  } else if (schema.type === 'array') {
    const items = schema.items as JsonObject;
    facts.push(`array of ${items.type ?? 'objects'}${items.type ? 's' : ''}`);
  } else {
    facts.push(String(schema.format ?? schema.type));
  }
  if (schema.minLength !== undefined && schema.minLength === schema.maxLength) {
    facts.push(`${schema.minLength} characters`);
  } else if (schema.maxLength !== undefined) {
    facts.push(`at most ${schema.maxLength} characters`);
  }
  if (schema.minimum !== undefined) facts.push(`at least ${schema.minimum}`);
  if (schema.maxItems !== undefined) facts.push(`at most ${schema.maxItems}`);
  if (schema.pattern !== undefined) facts.push(`matches ${schema.pattern}`);
  if (schema.default !== undefined) facts.push(`default ${schema.default}`);
  return facts;
}

type Content = { schema: JsonObject; example: Json; examples?: JsonObject };

function contentOf(message: JsonObject): Content | null {
  const content = message.content as { 'application/json': Content } | undefined;
  return content?.['application/json'] ?? null;
}

function resolve(document: OpenApiDocument, node: JsonObject): JsonObject {
  if (typeof node.$ref !== 'string') return node;
  const [, , kind = '', name = ''] = node.$ref.split('/');
  const found = document.components[kind]?.[name];
  assert(found, `${node.$ref} is in the document`);
  return found;
}

function pretty(value: Json | undefined): string {
  return JSON.stringify(value, null, 2);
}
