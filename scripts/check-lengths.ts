import fs from 'node:fs';
import path from 'node:path';
import { parseSync } from '@swc/core';

// How long a function and a file may be. A nested function counts in the one around it, so that a
// factory cannot hide a program in its closures. Tests are not covered: a scenario reads from top
// to bottom, and a table of cases may be as long as it needs.

const functionLinesMax = 70;
/** A function of a `.tsx` file that returns JSX: half of it is the page's structure. */
const componentLinesMax = 120;
const fileLinesMax = 500;
const exceptionsMax = 8;

const covered = '{bench,examples,scripts,sdk/src,src,test-gateway,web}/**/*.{js,mjs,ts,tsx}';
const uncovered = /\.test\.ts$|\.d\.m?ts$|(^|\/)(dist(\.\d+)?|node_modules)\//;

/** Files and functions (`file function`) that may be longer, each with its reason. */
const exceptions: Record<string, string> = {
  'sdk/src/api.ts': 'the generator writes it from the descriptions of the endpoints',
};

const functionTypes = new Set([
  'ArrowFunctionExpression',
  'ClassMethod',
  'Constructor',
  'FunctionDeclaration',
  'FunctionExpression',
  'GetterProperty',
  'MethodProperty',
  'PrivateMethod',
  'SetterProperty',
]);

/** A node of the parsed source. */
type Node = { type?: string; span?: Span; [member: string]: unknown };
type Span = { start: number; end: number };

type Long = { name: string; lines: number; linesMax: number };

/** Functions and files that are too long, and exceptions that are no longer needed. */
export function findLongCode(
  root: string,
  allowed: readonly string[] = Object.keys(exceptions),
): string[] {
  const long = fs
    .globSync(covered, { cwd: root })
    .map((file) => file.replaceAll(path.sep, '/'))
    .filter((file) => !uncovered.test(file))
    .sort()
    .flatMap((file) => findLongInFile(file, fs.readFileSync(path.join(root, file))));
  const names = new Set(long.map(({ name }) => name));
  const problems = long
    .filter(({ name }) => !allowed.includes(name))
    .map(({ name, lines, linesMax }) => `${name} has ${lines} lines, more than ${linesMax}`);
  for (const name of allowed) {
    if (!names.has(name)) {
      problems.push(`scripts/check-lengths.ts: ${name} is not too long; remove it from the list`);
    }
  }
  if (Object.keys(exceptions).length > exceptionsMax) {
    problems.push(`scripts/check-lengths.ts has more than ${exceptionsMax} exceptions`);
  }
  return problems;
}

function findLongInFile(file: string, source: Buffer): Long[] {
  const lines = countLines(source, 0, source.length);
  if (lines <= functionLinesMax) return [];
  const long = findLongFunctions(file, source);
  if (lines > fileLinesMax) long.unshift({ name: file, lines, linesMax: fileLinesMax });
  return long;
}

/** The outermost functions that are too long. Functions inside a long function are not checked. */
function findLongFunctions(file: string, source: Buffer): Long[] {
  const isPage = file.endsWith('.tsx');
  const long: Long[] = [];
  const visit = (value: unknown, name: string) => {
    if (Array.isArray(value)) for (const one of value) visit(one, name);
    if (!isNode(value)) return;
    if (isFunction(value)) {
      // Spans count the file's bytes from one.
      const lines = countLines(source, value.span.start - 1, value.span.end - 1);
      const linesMax = isPage && returnsJsx(value) ? componentLinesMax : functionLinesMax;
      const own = `${file} ${nameOf(value) ?? name}`;
      if (lines > linesMax) {
        long.push({ name: own, lines, linesMax });
        return;
      }
    }
    const inner = nameOf(value) ?? name;
    for (const member of Object.values(value)) visit(member, inner);
  };
  const options = { syntax: 'typescript', tsx: isPage, target: 'esnext' } as const;
  visit(parseSync(source.toString(), options), '(module)');
  return long;
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isFunction(node: Node): node is Node & { span: Span } {
  return node.span !== undefined && functionTypes.has(node.type ?? '');
}

/** The name in the source of a function, or of the variable or member that holds it. */
function nameOf(node: Node): string | null {
  for (const holder of [node.identifier, node.id, node.key]) {
    if (!isNode(holder)) continue;
    const id = isNode(holder.id) ? holder.id : holder;
    if (typeof id.value === 'string') return id.value;
  }
  return node.type === 'Constructor' ? 'constructor' : null;
}

/** Whether one of its own return statements, or its expression, contains JSX. */
function returnsJsx(node: Node): boolean {
  const contains = (value: unknown, isReturned: boolean): boolean => {
    if (Array.isArray(value)) return value.some((one) => contains(one, isReturned));
    if (!isNode(value) || isFunction(value)) return false;
    if (isReturned && /^JSX(Element|Fragment)$/.test(value.type ?? '')) return true;
    const isReturn = isReturned || value.type === 'ReturnStatement';
    return Object.values(value).some((member) => contains(member, isReturn));
  };
  const { body } = node;
  return contains(body, isNode(body) && body.type !== 'BlockStatement');
}

function countLines(source: Buffer, start: number, end: number): number {
  let lines = source[end - 1] === 10 ? 0 : 1;
  for (let index = start; index < end; index++) if (source[index] === 10) lines++;
  return lines;
}
