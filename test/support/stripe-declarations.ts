import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

// Reads the declarations of the pinned SDK and reports where a value departs from them. The
// compiler checks how the test gateway builds its objects; this checks what it sends.

type Declaration =
  | { kind: 'interface'; members: Map<string, { optional: boolean; type: string }> }
  | { kind: 'alias'; type: string };

const folder = new URL('../../node_modules/stripe/esm/', import.meta.url);
const files = [
  'resources/Customers',
  'resources/ConfirmationTokens',
  'resources/PaymentMethods',
  'resources/PaymentIntents',
  'resources/SetupIntents',
  'resources/SetupAttempts',
  'resources/Disputes',
  'resources/Files',
  'resources/BalanceTransactions',
  'resources/Charges',
  'resources/Refunds',
  'shared',
  'lib',
];

/** Keyed by full name: `PaymentIntent`, `PaymentIntent.NextAction.RedirectToUrl`. */
const declarations = new Map<string, Declaration>();
for (const file of files) {
  const text = readFileSync(fileURLToPath(new URL(`${file}.d.ts`, folder)), 'utf8');
  readDeclarations(text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, ''), '');
}

function readDeclarations(text: string, within: string): void {
  const head =
    /(?:export )?(?:declare )?(interface|namespace|type|class) (\w+)(?:<\w+>)?([^{=;]*)([{=])/g;
  for (let match = head.exec(text); match !== null; match = head.exec(text)) {
    const [, kind, name, , opening] = match;
    const full = within === '' ? `${name}` : `${within}.${name}`;
    const start = head.lastIndex;
    const end = opening === '{' ? closing(text, start) : endOfStatement(text, start);
    const body = text.slice(start, end);
    head.lastIndex = end + 1;
    if (kind === 'interface') {
      if (!declarations.has(full)) {
        declarations.set(full, { kind: 'interface', members: readMembers(body) });
      }
    } else if (kind === 'type') declarations.set(full, { kind: 'alias', type: body.trim() });
    else if (kind === 'namespace') readDeclarations(body, full);
  }
}

function closing(text: string, from: number): number {
  let depth = 1;
  for (let i = from; i < text.length; i += 1) {
    if (text[i] === '{') depth += 1;
    if (text[i] === '}') depth -= 1;
    if (depth === 0) return i;
  }
  throw new Error('a brace is never closed');
}

function endOfStatement(text: string, from: number): number {
  let depth = 0;
  for (let i = from; i < text.length; i += 1) {
    if ('{(<['.includes(text[i] ?? '')) depth += 1;
    if ('})>]'.includes(text[i] ?? '') && text[i - 1] !== '=') depth -= 1;
    if (text[i] === ';' && depth === 0) return i;
  }
  throw new Error('a statement never ends');
}

function readMembers(body: string): Map<string, { optional: boolean; type: string }> {
  const members = new Map<string, { optional: boolean; type: string }>();
  const member = /\s*(?:readonly )?'?([\w-]+)'?(\?)?:/y;
  for (let at = 0; at < body.length; ) {
    member.lastIndex = at;
    const match = member.exec(body);
    if (match === null) break;
    const end = endOfStatement(body, member.lastIndex);
    const type = body.slice(member.lastIndex, end).trim();
    members.set(match[1] ?? '', { optional: match[2] === '?', type });
    at = end + 1;
  }
  return members;
}

/** One sentence for each place where a value departs from the SDK's declaration of a type. */
export function departures(value: unknown, type: string): string[] {
  return check(value, type, '', type);
}

function check(value: unknown, type: string, scope: string, path: string): string[] {
  const choices = split(type);
  if (choices.length === 1) return checkOne(value, choices[0] ?? '', scope, path);
  const results = choices.map((choice) => checkOne(value, choice, scope, path));
  if (results.some((problems) => problems.length === 0)) return [];
  // If no alternative fits, this reports the one that matched deepest.
  return results.toSorted((left, right) => depthOf(right) - depthOf(left))[0] ?? [];
}

function depthOf(problems: string[]): number {
  return Math.max(...problems.map((problem) => problem.split('.').length));
}

function split(type: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let part = '';
  for (const character of type) {
    if ('{(<['.includes(character)) depth += 1;
    if ('})>]'.includes(character)) depth -= 1;
    if (character === '|' && depth === 0) {
      parts.push(part.trim());
      part = '';
    } else part += character;
  }
  return [...parts, part.trim()].filter((one) => one !== '');
}

function checkOne(value: unknown, type: string, scope: string, path: string): string[] {
  const wrong = [`${path} is ${JSON.stringify(value)?.slice(0, 60)}, not ${type}`];
  switch (type) {
    case 'string':
    case 'OtherString':
      return typeof value === 'string' ? [] : wrong;
    case 'number':
      return typeof value === 'number' && Number.isSafeInteger(value) ? [] : wrong;
    case 'boolean':
      return typeof value === 'boolean' ? [] : wrong;
    case 'null':
      return value === null ? [] : wrong;
    case 'void':
      return wrong;
    case 'true':
    case 'false':
      return String(value) === type && typeof value === 'boolean' ? [] : wrong;
  }
  if (type.startsWith("'")) return value === type.slice(1, -1) ? [] : wrong;
  const list = /^Array<(.*)>$/s.exec(type)?.[1];
  if (list !== undefined) {
    if (!Array.isArray(value)) return wrong;
    return value.flatMap((item, i) => check(item, list, scope, `${path}[${i}]`));
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    // Only an alias can still resolve to a type that is not an object.
    const alias = resolve(type, scope);
    return alias?.declaration.kind === 'alias'
      ? check(value, alias.declaration.type, alias.name, path)
      : wrong;
  }
  if (type.startsWith('{') || type === 'Metadata') {
    return Object.values(value).every((item) => typeof item !== 'object') ? [] : wrong;
  }
  const [, name = '', item] = /^([\w.]+)(?:<(.*)>)?$/s.exec(type) ?? [];
  const found = resolve(name, scope);
  if (found === null) return [`${path} is of the type ${type}, which is not declared here`];
  const { declaration } = found;
  if (declaration.kind === 'alias') return check(value, declaration.type, found.name, path);
  const problems: string[] = [];
  for (const [member, { optional, type: wanted }] of declaration.members) {
    const given = (value as Record<string, unknown>)[member];
    if (given === undefined) {
      if (!optional) problems.push(`${path}.${member} is missing`);
    } else {
      const type = item === undefined ? wanted : wanted.replaceAll(/\bT\b/g, item);
      problems.push(...check(given, type, found.name, `${path}.${member}`));
    }
  }
  for (const member of Object.keys(value)) {
    if (!declaration.members.has(member)) problems.push(`${path}.${member} is not declared`);
  }
  return problems;
}

/** Resolves a name from inside a declaration: its own namespace first, then the outer ones. */
function resolve(name: string, scope: string): { name: string; declaration: Declaration } | null {
  for (let at = scope; ; at = at.split('.').slice(0, -1).join('.')) {
    const full = at === '' ? name : `${at}.${name}`;
    const declaration = declarations.get(full);
    if (declaration !== undefined) return { name: full, declaration };
    if (at === '') return null;
  }
}
