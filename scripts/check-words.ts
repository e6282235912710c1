import fs from 'node:fs';
import path from 'node:path';

const covered =
  '{bench,examples,migrations,scripts,sdk,src,test,test-gateway,web}/**/*.{css,js,mjs,sql,ts,tsx}';
const uncovered = /(^|\/)(dist|node_modules)\//;

export type Comment = { line: number; text: string };

/**
 * The comments that have lines of their own, without their marks. Lines that follow each other are one
 * comment.
 */
export function readComments(source: string, isSql = false): Comment[] {
  const comments: Comment[] = [];
  const lines = source.split('\n');
  const single = isSql ? /^\s*-- ?(.*)$/ : /^\s*\/\/ ?(.*)$/;
  let open: Comment | null = null;
  let inBlock = false;
  for (const [index, line] of lines.entries()) {
    const add = (text: string) => {
      if (open === null) {
        open = { line: index + 1, text: '' };
        comments.push(open);
      }
      open.text = `${open.text} ${text.trim()}`.trim();
    };
    if (inBlock || /^\s*\{?\/\*/.test(line)) {
      if (!inBlock) open = null;
      add(line.replace(/^\s*(\{?\/\*+|\*(?!\/))?/, '').replace(/\*\/\}?.*$/, ''));
      inBlock = !line.includes('*/');
      if (!inBlock) open = null;
      continue;
    }
    const [, text] = single.exec(line) ?? [];
    if (text === undefined) open = null;
    else add(text);
  }
  return comments.filter(({ text }) => text !== '');
}
