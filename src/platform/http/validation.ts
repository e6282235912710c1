import Type, { type TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import Format from 'typebox/format';
import { Settings } from 'typebox/system';
import { ApiError } from './errors.ts';
import { unfaithfulText } from './json.ts';

// These formats are the only check of the e-mail addresses and URLs in requests.
Format.Set('email', isEmailAddress);
Format.Set('uri', isHttpUrl);

/** An integer that JSON, JavaScript and PostgreSQL all represent exactly. */
export const Integer = (options: { minimum?: number; description: string; examples?: number[] }) =>
  Type.Integer({ maximum: Number.MAX_SAFE_INTEGER, ...options });

export type FieldError = { path: string; problem: string };

/** At most this many bad fields are listed. */
const errorsMax = 50;
// A field that breaks several keywords is listed once, so more errors are collected than listed.
// The default limit is 8.
Settings.Set({ maxErrors: 4 * errorsMax });

/** Compiles a schema into a function that lists the bad fields of a value, each once. */
export function compileSchema(schema: TSchema): (value: unknown) => FieldError[] {
  // An ID that is not a UUID is not found, like any unknown ID, so it passes here.
  const withoutIds = JSON.parse(JSON.stringify(schema), (name, value) =>
    name === 'format' && value === 'uuid' ? undefined : value,
  );
  const validator = Compile(withoutIds as TSchema);
  const cutArrays = arrayCutter(schema);
  const findUnfaithful = unfaithfulFinder(schema);
  return (given) => {
    const byPath = new Map<string, string>();
    const value = cutArrays(given, byPath);
    for (const error of validator.Check(value) ? [] : validator.Errors(value)) {
      const path = fieldPath(error.instancePath);
      const { keyword, params } = error as { keyword: string; params: Record<string, unknown> };
      if (keyword === 'required') {
        for (const name of params.requiredProperties as string[]) {
          byPath.set(joinPath(path, name), 'is required');
        }
      } else if (!byPath.has(path)) {
        byPath.set(path, describeProblem(keyword, params));
      }
    }
    findUnfaithful?.(value, '', (path) => {
      if (!byPath.has(path)) byPath.set(path, unfaithful);
    });
    if (byPath.size === 0) return [];
    const errors = [...byPath].map(([path, problem]) => ({ path, problem }));
    if (errors.length <= errorsMax) return errors;
    // Outer fields come first: a list that is too long matters more than its items.
    return errors.sort((a, b) => depthOf(a.path) - depthOf(b.path)).slice(0, errorsMax);
  };
}

type SchemaParts = {
  maxItems?: number;
  properties?: Record<string, TSchema>;
  required?: string[];
  anyOf?: TSchema[];
};

/** Every member in a schema, outside arrays, as the path of names that leads to it. */
function membersOf(
  schema: TSchema,
): { names: string[]; parts: SchemaParts; isOptional: boolean }[] {
  const { properties = {}, required = [], anyOf = [] } = schema as SchemaParts;
  return [
    ...anyOf.flatMap(membersOf),
    ...Object.entries(properties).flatMap(([name, property]) => [
      { names: [name], parts: property as SchemaParts, isOptional: !required.includes(name) },
      ...membersOf(property).map((one) => ({ ...one, names: [name, ...one.names] })),
    ]),
  ];
}

/** The object that would hold the last of these names; null if the value has no such object. */
function holderOf(value: unknown, names: string[]): Record<string, unknown> | null {
  let holder = value;
  for (let index = 0; index < names.length - 1; index++) {
    if (typeof holder !== 'object' || holder === null) return null;
    holder = (holder as Record<string, unknown>)[names[index] as string];
  }
  return typeof holder === 'object' ? (holder as Record<string, unknown> | null) : null;
}

/**
 * Reports arrays that are too long and truncates them in a copy, so that a hostile array costs no
 * more to validate than the longest valid one.
 */
function arrayCutter(schema: TSchema): (value: unknown, problems: Map<string, string>) => unknown {
  const limited = membersOf(schema).filter(({ parts }) => parts.maxItems !== undefined);
  return (value, problems) => {
    let cut = value;
    for (const { names, parts } of limited) {
      const name = names.at(-1) as string;
      const list = holderOf(cut, names)?.[name];
      const maxItems = parts.maxItems as number;
      if (!Array.isArray(list) || list.length <= maxItems) continue;
      problems.set(names.reduce(joinPath, ''), describeProblem('maxItems', { limit: maxItems }));
      cut = withMember(cut as Record<string, unknown>, names, list.slice(0, maxItems));
    }
    return cut;
  };
}

function withMember(
  value: Record<string, unknown>,
  [name = '', ...rest]: string[],
  member: unknown,
): Record<string, unknown> {
  const inner = rest.length === 0 ? member : withMember(value[name] as typeof value, rest, member);
  return { ...value, [name]: inner };
}

/** Removes optional members that are null, in place: null is the same as absent. */
export function nullDropper(schema: TSchema): (value: unknown) => void {
  const optional = membersOf(schema).filter(({ isOptional }) => isOptional);
  return (value) => {
    for (const { names } of optional) {
      const name = names.at(-1) as string;
      const holder = holderOf(value, names);
      if (holder !== null && holder[name] === null) delete holder[name];
    }
  };
}

/**
 * `lasting` means that the body alone decides, not the merchant's rules, the settings or the time.
 */
export function validationFailed(errors: FieldError[], { lasting = true } = {}): ApiError {
  const details = errors.map(
    ({ path, problem }) => `Validation failed: ${path ? `${path} ` : ''}${problem}.`,
  );
  return new ApiError(422, 'unprocessable_entity', details, { lasting });
}

const typeNames: Record<string, string> = {
  integer: 'an integer',
  string: 'a string',
  object: 'an object',
  array: 'an array',
};

const formatProblems: Record<string, string> = {
  email: 'must be an e-mail address',
  uri: 'must be an absolute http or https URL',
  uuid: 'must be a UUID',
};

function describeProblem(keyword: string, params: Record<string, unknown>): string {
  switch (keyword) {
    case 'type':
      return `must be ${typeNames[String(params.type)] ?? params.type}`;
    case 'format':
      return formatProblems[String(params.format)] ?? `must be a valid ${params.format}`;
    case 'pattern':
      return `must match ${String(params.pattern)}`;
    case 'minLength':
      return `must have at least ${params.limit} character${params.limit === 1 ? '' : 's'}`;
    case 'maxLength':
      return `must have at most ${params.limit} characters`;
    case 'minimum':
      return `must be at least ${params.limit}`;
    case 'maximum':
      return `must be at most ${params.limit}`;
    case 'maxItems':
      return `must have at most ${params.limit} items`;
    default:
      return 'is not valid';
  }
}

/** `/checkout/line_items/3/amount` → `checkout.line_items[3].amount` */
function fieldPath(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .reduce((path, name) => joinPath(path, name.replaceAll('~1', '/').replaceAll('~0', '~')), '');
}

function depthOf(path: string): number {
  return path.split(/[.[]/).length;
}

function joinPath(path: string, name: string): string {
  if (/^\d+$/.test(name)) return `${path}[${name}]`;
  return path ? `${path}.${name}` : name;
}

const unfaithful = 'has a character that cannot be stored (U+0000 or half a surrogate pair)';

/** Calls `report` with the path of each text below this value that cannot be stored. */
type FindUnfaithful = (value: unknown, path: string, report: (path: string) => void) => void;

/**
 * Finds text that PostgreSQL or JSON cannot store (decision 0002), in the members that the schema
 * knows. Other members are ignored and never stored. Null if the schema allows no text, because any
 * text is then an error already.
 */
function unfaithfulFinder(schema: TSchema): FindUnfaithful | null {
  const { type, items, properties } = schema as SchemaParts & { type?: string; items?: TSchema };
  // A union has no type of its own.
  if (type === undefined || type === 'string') {
    return (value, path, report) => {
      if (typeof value === 'string' && unfaithfulText(value)) report(path);
    };
  }
  const ofItem = items && unfaithfulFinder(items);
  if (ofItem) {
    return (value, path, report) => {
      if (!Array.isArray(value)) return;
      for (const [index, one] of value.entries()) ofItem(one, `${path}[${index}]`, report);
    };
  }
  const members = Object.entries(properties ?? {}).flatMap(([name, property]) => {
    const find = unfaithfulFinder(property);
    return find ? [{ name, find }] : [];
  });
  if (members.length === 0) return null;
  return (value, path, report) => {
    if (typeof value !== 'object' || value === null) return;
    for (const { name, find } of members) {
      if (!Object.hasOwn(value, name)) continue;
      find((value as Record<string, unknown>)[name], joinPath(path, name), report);
    }
  };
}

/** Whether a text is an e-mail address that can be stored as it is. */
export const isFaithfulEmail = (text: string): boolean =>
  isEmailAddress(text) && !unfaithfulText(text);

/** A local part, one @ and a dotted domain, without white space or control characters. */
function isEmailAddress(text: string): boolean {
  if (text.length > 254) return false;
  const at = text.lastIndexOf('@');
  const local = text.slice(0, at);
  const domain = text.slice(at + 1);
  return (
    at > 0 &&
    local.length <= 64 &&
    !/[\s\p{Cc}@"(),:;<>[\\\]]/u.test(local) &&
    /^(?!-)[\p{L}\p{N}-]{1,63}(?<!-)(\.(?!-)[\p{L}\p{N}-]{1,63}(?<!-))+$/u.test(domain)
  );
}

/**
 * Whether a text is an absolute http or https URL. Refuses white space, control characters,
 * backslashes and a third slash, which the parser would silently change.
 */
export function isHttpUrl(text: string): boolean {
  return /^https?:\/\/(?!\/)[^\s\p{Cc}\\]+$/iu.test(text) && URL.canParse(text);
}
