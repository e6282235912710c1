import type { Language } from '#platform/shared/language.ts';
import { showMoney } from '#platform/shared/money.ts';
import { oneLine } from '#platform/shared/plain-text.ts';
import type { Territory } from '#platform/shared/territories.ts';
import { fillIn } from '#platform/shared/words/fill-in.ts';
import { words } from '#platform/shared/words/words.ts';
import type { Plan } from './plan.ts';

/** The payments to come as an iCalendar file (RFC 5545): one all-day event for each. */
export function writeCalendar(
  plan: Plan,
  about: {
    checkout_id: string;
    merchant: { name: string; territory: Territory };
    order: string;
    url: string;
    language: Language;
    now: Temporal.Instant;
  },
): string {
  const stamp = about.now.toString({ smallestUnit: 'second' }).replace(/[-:]/g, '');
  const day = (date: Temporal.PlainDate) => date.toString().replaceAll('-', '');
  const { calendar } = words[about.language];
  const name = oneLine(about.merchant.name);
  const events = plan.payments
    .filter(({ status }) => status === 'next' || status === 'planned')
    .flatMap(({ number, due_on, amount }) => {
      const date = Temporal.PlainDate.from(due_on);
      const price = showMoney(amount, about.merchant.territory).replace(/[\u00a0\u202f]/g, ' ');
      const which = fillIn(calendar.description, {
        number,
        count: plan.payments.length,
        order: oneLine(about.order),
      });
      return [
        'BEGIN:VEVENT',
        `UID:${about.checkout_id}-${number}@tranche`,
        `DTSTAMP:${stamp}`,
        `DTSTART;VALUE=DATE:${day(date)}`,
        `DTEND;VALUE=DATE:${day(date.add({ days: 1 }))}`,
        `SUMMARY:${text(fillIn(calendar.summary, { amount: price, merchant: name }))}`,
        `DESCRIPTION:${text(`${which} ${about.url}`)}`,
        'TRANSP:TRANSPARENT',
        'END:VEVENT',
      ];
    });
  const lines = [
    'BEGIN:VCALENDAR',
    'VERSION:2.0',
    'PRODID:-//Tranche//Payments//EN',
    'CALSCALE:GREGORIAN',
    ...events,
    'END:VCALENDAR',
  ];
  return `${lines.map(fold).join('\r\n')}\r\n`;
}

const text = (value: string) => value.replace(/[\\;,]/g, (one) => `\\${one}`).replace(/\n/g, '\\n');

const lineBytesMax = 75;

/** A line of more than 75 bytes continues on the next line, which begins with a space. */
function fold(line: string): string {
  const parts: string[] = [];
  let part = '';
  let bytes = 0;
  for (const character of line) {
    const size = Buffer.byteLength(character);
    if (bytes + size > lineBytesMax) {
      parts.push(part);
      part = ' ';
      bytes = 1;
    }
    part += character;
    bytes += size;
  }
  return [...parts, part].join('\r\n');
}
