import { invalidRequest } from './errors.ts';

export type Form = { [name: string]: string | Form };

/**
 * Reads `a[b][c]=1&d[]=2&d[]=3` as nested members. A list becomes members with numbers as names.
 */
export function parseForm(text: string): Form {
  const form: Form = Object.create(null);
  for (const [path, value] of new URLSearchParams(text)) {
    const names = [...path.matchAll(/^[^[\]]+|\[([^[\]]*)\]/g)].map((part) => part[1] ?? part[0]);
    if (names.length === 0 || names.length > 8) {
      throw invalidRequest('Invalid parameter name.', { code: 'parameter_unknown', param: path });
    }
    let at = form;
    for (const [depth, given] of names.entries()) {
      const name = given === '' ? String(Object.keys(at).length) : given;
      if (depth === names.length - 1) {
        at[name] = value;
        break;
      }
      const next = at[name];
      if (typeof next === 'object') at = next;
      else {
        const made: Form = Object.create(null);
        at[name] = made;
        at = made;
      }
    }
  }
  return form;
}

/** The parameters that the gateway models, each with its kind. */
export type Shape = {
  [name: string]: 'string' | 'integer' | 'boolean' | 'strings' | 'metadata' | Shape;
};

type Read<S extends Shape> = {
  [N in keyof S]?: S[N] extends 'string'
    ? string
    : S[N] extends 'integer'
      ? number
      : S[N] extends 'boolean'
        ? boolean
        : S[N] extends 'strings'
          ? string[]
          : S[N] extends 'metadata'
            ? Record<string, string>
            : S[N] extends Shape
              ? Read<S[N]>
              : never;
};

/** Reads the parameters by their kinds. Like Stripe, it refuses unknown parameters. */
export function readForm<const S extends Shape>(form: Form, shape: S, under = ''): Read<S> {
  const read: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(form)) {
    const param = under === '' ? name : `${under}[${name}]`;
    const kind = Object.hasOwn(shape, name) ? shape[name] : undefined;
    if (kind === undefined) {
      throw invalidRequest(`Received unknown parameter: ${param}`, {
        code: 'parameter_unknown',
        param,
      });
    }
    if (typeof kind === 'object') {
      if (typeof value === 'string') throw invalidRequest('Invalid object', { param });
      read[name] = readForm(value, kind, param);
    } else {
      read[name] = readMember(value, kind, param);
    }
  }
  return read as Read<S>;
}

function readMember(value: string | Form, kind: Exclude<Shape[string], Shape>, param: string) {
  if (kind === 'strings') {
    if (typeof value === 'string') throw invalidRequest('Invalid array', { param });
    return Object.values(value).map((item) => readString(item, param));
  }
  if (kind === 'metadata') {
    if (typeof value === 'string') throw invalidRequest('Invalid object', { param });
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, readString(item, `${param}[${name}]`)]),
    );
  }
  const text = readString(value, param);
  if (kind === 'integer') {
    if (!/^-?\d{1,15}$/.test(text)) {
      throw invalidRequest(`Invalid integer: ${text.slice(0, 100)}`, {
        code: 'parameter_invalid_integer',
        param,
      });
    }
    return Number(text);
  }
  if (kind === 'boolean') {
    if (text !== 'true' && text !== 'false') {
      throw invalidRequest(`Invalid boolean: ${text.slice(0, 100)}`, { param });
    }
    return text === 'true';
  }
  if (text === '') {
    throw invalidRequest(`You passed an empty string for '${param}'.`, {
      code: 'parameter_invalid_empty',
      param,
    });
  }
  return text;
}

function readString(value: string | Form, param: string): string {
  if (typeof value !== 'string') throw invalidRequest('Invalid string', { param });
  return value;
}
