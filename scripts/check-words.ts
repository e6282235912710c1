import fs from 'node:fs';
import path from 'node:path';

// Comments are sentences in plain words, and names use the words of the table: CONTRIBUTING,
// "Words" and "Style". This finds beginnings and words that made readers stop, as far as a pattern
// can recognise them.

const covered =
  '{bench,examples,migrations,scripts,sdk,src,test,test-gateway,web}/**/*.{css,js,mjs,sql,ts,tsx}';
// The comments of the SDK's types are the texts of the API's description.
const uncovered = /(^|\/)(dist|node_modules)\/|^sdk\/src\/api\.ts$/;

type Rule = { pattern: RegExp; advice: string };

const rules: Rule[] = [
  { pattern: /^Of\b/, advice: 'begin with the subject' },
  {
    pattern: /^The same(,|\.| (for|with|in|on)\b)/,
    advice: 'name the subject: a hover shows no comment before this one',
  },
  {
    pattern: /^What\b/,
    advice: 'begin with a noun or a verb: "The amount that …", "Returns what …"',
  },
  {
    pattern: /\b(null|undefined|false|true): /i,
    advice: 'write "Null if …" or "Returns false if …"',
  },
  { pattern: /\b(no|some|every)body\b/i, advice: 'name the merchant, shopper, operator or caller' },
  { pattern: /\bwho(m)?ever\b|\bwho asks\b/i, advice: 'name the person or the caller' },
  { pattern: /\bthe other side\b/i, advice: 'receiver, server or client' },
  { pattern: /\bin hand\b/i, advice: 'claimed' },
  { pattern: /\b(puts?|putting) down\b|\blets? go\b/i, advice: 'release or void' },
  { pattern: /\b(gives?|gave|given|giving) back\b/i, advice: 'release, void, refund or return' },
  { pattern: /\b(handful|crowd)\b/i, advice: 'batch' },
  { pattern: /\bunder way\b/i, advice: 'in flight' },
  { pattern: /\bpatience\b/i, advice: 'backoff or grace' },
  { pattern: /\btrouble\b/i, advice: 'alert' },
  { pattern: /\banother go\b|\b(try|tries|tried|trying) again\b/i, advice: 'retry' },
  {
    pattern:
      /\b(the|its|all|many|several|two|three|of) tries\b|\b(a|another|last|next|each) try\b/i,
    advice: 'attempt',
  },
  { pattern: /\bwhose (it|they|a row) (is|are)\b/i, advice: 'the owner' },
  { pattern: /\bwalk(s|ed|ing)?\b/i, advice: 'read through' },
  { pattern: /\blanes?\b/i, advice: 'queue' },
  { pattern: /\bbeats?\b/i, advice: 'heartbeat' },
  { pattern: /\b(a|an|the|each|every|its|no|of) findings?\b(?! out)/i, advice: 'difference' },
  { pattern: /\badopt(s|ed|ing|ion|er)?\b/i, advice: 'record' },
  {
    pattern: /\b(a|the|its|each|every|no|of|last|next) marks?\b/i,
    advice: 'position, heartbeat, retention date, key check or logo',
  },
  { pattern: /\bsurely\b/i, advice: 'certainly' },
  { pattern: /\bthe long run\b/i, advice: '`npm run test:long`' },
  { pattern: /\bways? in\b(?! which)/i, advice: 'sign-in method' },
  { pattern: /\bfresh proof\b/i, advice: 're-authentication' },
  { pattern: /\bcounts? where two\b/i, advice: 'can be the second approver' },
  {
    pattern:
      /\b(an|the|one|each|every|this|these|last|long|newest|several|many|own|of|'s) acts?\b/i,
    advice: 'attempt (shopper), action (operator) or bulk action',
  },
];

/** Names of code, tables, columns, classes and files, with a space between their words. */
const nameRules: Rule[] = [
  { pattern: /\bacts?\b/, advice: 'attempt (shopper), action (operator), bulk action or run' },
  { pattern: /\bbeats?\b/, advice: 'heartbeat' },
  { pattern: /\badopt(s|ed|ing|ion|er)?\b/, advice: 'record' },
  { pattern: /\bfindings?\b/, advice: 'difference, answer or problem' },
  { pattern: /\blanes?\b/, advice: 'queue, or concurrency for a number' },
  { pattern: /\bwalk(s|ed|ing)?\b/, advice: 'read through' },
  { pattern: /\btries\b/, advice: 'attempts' },
  { pattern: /^says$/, advice: 'description' },
  // A name that begins with this word uses it as a verb: `markSent`.
  { pattern: /\bmarks?$/, advice: 'position, heartbeat, retention date, key check or logo' },
];

/** Words that are right in these places, each with the reason. */
const exceptions: Record<string, string> = {
  'src/operating/docs/docs.css mark': 'the HTML element',
  'src/purchases/callbacks/delivery/limits.ts tries': "an option of Node's resolver",
  'web/console/pages/payout.tsx says': 'a text of the page',
  'web/console/parts/states.tsx tries': 'a text of the page',
  'web/docs/search.ts mark': 'the HTML element',
};

export function findWrongWords(root: string): string[] {
  const problems: string[] = [];
  for (const name of fs.globSync(covered, { cwd: root }).sort()) {
    const file = name.replaceAll(path.sep, '/');
    if (uncovered.test(file)) continue;
    const source = fs.readFileSync(path.join(root, file), 'utf8');
    for (const { line, text } of readComments(source, file.endsWith('.sql'))) {
      const words = text.replace(/`[^`]*`|"[^"]*"/g, '…');
      for (const { pattern, advice } of rules) {
        const [found] = pattern.exec(words) ?? [];
        if (found === undefined || exceptions[`${file} ${found}`] !== undefined) continue;
        problems.push(`${file}:${line} says "${found.trim()}" in a comment: ${advice}`);
      }
    }
    const names = [path.basename(file, path.extname(file)), ...readNames(source, file)];
    for (const name of new Set(names)) {
      const words = wordsOf(name);
      const rule = nameRules.find(({ pattern }) => pattern.test(words));
      if (!rule || exceptions[`${file} ${name}`] !== undefined) continue;
      problems.push(`${file} has the name "${name}": ${rule.advice}`);
    }
  }
  return problems;
}

/** Files that may name a gateway: the adapters with their card forms, and the list of protocols. */
const knowsGateways =
  /^(src\/gateway\/(adapters|hyperswitch|stripe)\/|src\/gateway\/(gateway|settings)\.ts$|web\/card-forms\/|web\/pay\/gallery(\/|\.ts$))/;

/** Only an adapter knows which gateway it speaks to (decision 0029). */
export function findGatewayNames(root: string): string[] {
  const problems: string[] = [];
  for (const name of fs.globSync('{src,web}/**/*.{css,js,mjs,ts,tsx}', { cwd: root }).sort()) {
    const file = name.replaceAll(path.sep, '/');
    if (uncovered.test(file) || knowsGateways.test(file)) continue;
    const lines = fs.readFileSync(path.join(root, file), 'utf8').split('\n');
    for (const [index, line] of lines.entries()) {
      const [found] = /stripe|hyperswitch/i.exec(line) ?? [];
      if (found === undefined) continue;
      problems.push(`${file}:${index + 1} names a gateway ("${found}"), which only adapters do`);
    }
  }
  return problems;
}

/** The names in a file, outside its comments, texts and patterns. */
function readNames(source: string, file: string): string[] {
  const ignored = [
    String.raw`/\*[^]*?\*/`,
    file.endsWith('.sql') ? '--.*' : '//.*',
    String.raw`'(\\.|[^'\\\n])*'`,
    String.raw`"(\\.|[^"\\\n])*"`,
    '`(\\\\[^]|[^`\\\\])*`',
    String.raw`(?<=[(,=:[!&|?] ?|^\s+)/(\\.|\[(\\.|[^\]\\\n])*\]|[^/\\\n[])+/`,
  ];
  const code = source.replace(new RegExp(ignored.join('|'), 'gm'), ' ');
  return code.match(/[A-Za-z_][\w-]*/g) ?? [];
}

/** `seenAct`, `act_id` and `dialog-acts` become "seen act", "act id" and "dialog acts". */
const wordsOf = (name: string) =>
  name
    .replace(/(?<=[a-z\d])(?=[A-Z])|[_.-]+/g, ' ')
    .trim()
    .toLowerCase();

type Comment = { line: number; text: string };

/**
 * The comments on lines of their own, without `//` and the like. Consecutive lines are one comment.
 */
function readComments(source: string, isSql: boolean): Comment[] {
  const comments: Comment[] = [];
  const single = isSql ? /^\s*-- ?(.*)$/ : /^\s*\/\/ ?(.*)$/;
  let open: Comment | null = null;
  let inBlock = false;
  for (const [index, line] of source.split('\n').entries()) {
    const begins = !inBlock && /^\s*\{?\/\*/.test(line);
    const [, afterSlashes] = single.exec(line) ?? [];
    const text = inBlock || begins ? readBlockLine(line) : afterSlashes;
    if (begins || text === undefined) open = null;
    if (text === undefined) continue;
    if (open === null) {
      open = { line: index + 1, text: '' };
      comments.push(open);
    }
    open.text = `${open.text} ${text}`.trim();
    if (inBlock || begins) {
      inBlock = !line.includes('*/');
      if (!inBlock) open = null;
    }
  }
  return comments;
}

function readBlockLine(line: string): string {
  return line
    .replace(/^\s*(\{?\/\*+|\*(?!\/))?/, '')
    .replace(/\*\/.*$/, '')
    .trim();
}
