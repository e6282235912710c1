import type { DrillAnswer, DrillName } from '#hosting/sandbox/drill.ts';
import { fill, type Terminal } from './terminal.ts';

export type Result = {
  name: DrillName;
  title: string;
  result: 'pass' | 'fail' | 'not_tried';
  answers: DrillAnswer[];
  /** Says what was wrong, or why the check was not made. */
  problem: string | null;
  why: string;
  fix: string;
};

export type Report = {
  passed: boolean;
  /** Why the drill as a whole failed, apart from single checks. */
  problem: string | null;
  notify_url: string;
  client_reference_id: string;
  amount: string;
  is_known_order: boolean;
  checks: Result[];
};

const words = { pass: 'pass', fail: 'FAIL', not_tried: 'not tried' };

export function describeReport(terminal: Terminal, report: Report): string {
  const { checks, client_reference_id, amount, is_known_order, problem: whole } = report;
  const width = Math.max(...checks.map(({ title }) => title.length));
  const lines = checks.map(({ result, title, answers, problem, why, fix }) => {
    const word = words[result].padEnd(9);
    const codes = answers
      .map(({ status, reason, sent_in }) => {
        const slowly = sent_in === undefined ? '' : `, sent in ${(sent_in / 1000).toFixed(1)} s`;
        return `${status ?? reason}${slowly}`;
      })
      .join(', ');
    const head = `${result === 'pass' ? terminal.accent(word) : word}  ${title.padEnd(width)}  ${codes}`;
    if (result === 'pass') return `${head.trimEnd()}\n${below(terminal, [why])}`;
    const rest = result === 'fail' ? [`${problem} ${why}`, `Do: ${fix}`] : [problem ?? ''];
    return `${head.trimEnd()}\n${below(terminal, rest)}`;
  });
  const count = (wanted: Result['result']) =>
    checks.filter(({ result }) => result === wanted).length;
  const sum = [
    `${count('pass')} passed`,
    `${count('fail')} failed`,
    ...(count('not_tried') > 0 ? [`${count('not_tried')} not tried`] : []),
  ].join(', ');
  const look = is_known_order
    ? `Now look at ${client_reference_id} in your shop: it must be paid once and not cancelled.`
    : `${client_reference_id} is the drill's own order, which your shop does not know. For the complete drill let your shop create an order, leave it unpaid, and run this again.`;
  return `${terminal.accent('▮▯▯')} Go-live drill for ${report.notify_url}
    with ${client_reference_id}, ${amount}

${lines.join('\n\n')}

${sum}.
${whole === null ? '' : `${fill(`The drill failed. ${whole}`)}\n`}${fill(look)}`;
}

function below(terminal: Terminal, paragraphs: string[]): string {
  const indent = ' '.repeat(11);
  return paragraphs
    .flatMap((text) => fill(text, 69).split('\n'))
    .map((line) => indent + terminal.quiet(line))
    .join('\n');
}
