import { UsageError } from './command.ts';

const secondsPer = { s: 1, m: 60, h: 3600, d: 86_400 } as const;

/** Reads `90m`, `24h`, `7d` or `0` as seconds. */
export function readDuration(text: string, option: string): number {
  const match = /^(\d{1,9})([smhd])$/.exec(text.trim());
  if (match) return Number(match[1]) * secondsPer[match[2] as keyof typeof secondsPer];
  if (text.trim() === '0') return 0;
  throw new UsageError(
    `--${option} is "${text}" and must be a duration such as 90m, 24h or 7d, or 0.`,
  );
}

export function readInteger(text: string, option: string): number {
  if (!/^\d{1,15}$/.test(text.trim())) {
    throw new UsageError(`--${option} is "${text}" and must be a whole number.`);
  }
  return Number(text);
}
