import type { Language } from '../language.ts';
import { fillIn } from './fill-in.ts';
import { words } from './words.ts';

/** `15 December 2026` for `2026-12-15`, in the words of the page. */
export function writeDate(day: string, language: Language): string {
  const [year = '', month = '', number = ''] = day.split('-');
  return fillIn(words[language].page.date, {
    day: Number(number),
    month: monthName(month, language),
    year,
  });
}

/** `December 2026` for `2026-12`. */
export function writeMonth(text: string, language: Language): string {
  const [year = '', month = ''] = text.split('-');
  return `${monthName(month, language)} ${year}`;
}

const monthName = (month: string, language: Language) =>
  words[language].page.months.split(',')[Number(month) - 1] ?? '';
