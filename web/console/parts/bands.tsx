import { Button, TextInput } from '@mantine/core';
import type { Band } from '#operating/operations/merchant.schema.ts';
import { money } from '../format.ts';
import { parseAmount, typedAmount } from './amount.ts';

/** A band as it is typed. */
export type TypedBand = { key: number; from: string; to: string; terms: string };

let keys = 0;
function nextKey(): number {
  keys += 1;
  return keys;
}

export const typedBands = (bands: Band[]): TypedBand[] =>
  bands.map(({ from_amount, to_amount, terms }) => ({
    key: nextKey(),
    from: typedAmount(from_amount),
    to: typedAmount(to_amount),
    terms: terms.join(', '),
  }));

type Problems = { from?: string; to?: string; terms?: string };

/** The bands that were typed, or what is wrong with each. The server checks again. */
export function readBands(typed: TypedBand[]): { bands: Band[] | null; problems: Problems[] } {
  const problems: Problems[] = typed.map(() => ({}));
  const bands = typed.map((one, index) => {
    const problem = problems[index] ?? {};
    const from_amount = parseAmount(one.from) ?? 0;
    const to_amount = parseAmount(one.to) ?? 0;
    const terms = one.terms
      .split(/[\s,;]+/)
      .filter(Boolean)
      .map(Number);
    if (from_amount < 1) problem.from = 'Enter an amount such as 100,00.';
    if (to_amount < 1) problem.to = 'Enter an amount such as 999,99.';
    else if (to_amount < from_amount) problem.to = 'This is below the start of the band.';
    if (terms.length === 0 || terms.some((term) => !Number.isInteger(term) || term < 1)) {
      problem.terms = 'Enter numbers such as 1, 3, 6.';
    }
    return { from_amount, to_amount, terms: [...new Set(terms)].sort((a, b) => a - b) };
  });
  const ordered = [...bands.keys()].sort(
    (one, other) => (bands[one]?.from_amount ?? 0) - (bands[other]?.from_amount ?? 0),
  );
  for (const [place, index] of ordered.entries()) {
    const before = bands[ordered[place - 1] ?? -1];
    const band = bands[index];
    const problem = problems[index];
    if (before && band && problem && band.from_amount <= before.to_amount) {
      problem.from ??= 'This overlaps the band before it.';
    }
  }
  const isGood = problems.every((problem) => Object.keys(problem).length === 0);
  return { bands: isGood ? ordered.map((index) => bands[index] as Band) : null, problems };
}

export function BandsForm(props: { bands: TypedBand[]; onChange: (bands: TypedBand[]) => void }) {
  const { problems } = readBands(props.bands);
  const set = (index: number, change: Partial<TypedBand>) =>
    props.onChange(props.bands.map((one, at) => (at === index ? { ...one, ...change } : one)));
  return (
    <fieldset className="bands">
      <legend>Bands: which terms an amount may be paid in</legend>
      {props.bands.map((band, index) => (
        <div key={band.key} className="band">
          <TextInput
            label={`From, band ${index + 1}`}
            leftSection="R"
            inputMode="decimal"
            value={band.from}
            error={problems[index]?.from}
            onChange={(event) => set(index, { from: event.currentTarget.value })}
          />
          <TextInput
            label={`To, band ${index + 1}`}
            leftSection="R"
            inputMode="decimal"
            value={band.to}
            error={problems[index]?.to}
            onChange={(event) => set(index, { to: event.currentTarget.value })}
          />
          <TextInput
            label={`Payments, band ${index + 1}`}
            value={band.terms}
            error={problems[index]?.terms}
            onChange={(event) => set(index, { terms: event.currentTarget.value })}
          />
          <Button
            variant="subtle"
            color="danger"
            aria-label={`Remove band ${index + 1}`}
            disabled={props.bands.length === 1}
            onClick={() => props.onChange(props.bands.filter((_, at) => at !== index))}
          >
            Remove
          </Button>
        </div>
      ))}
      <span>
        <Button
          variant="default"
          size="xs"
          onClick={() => {
            const last = parseAmount(props.bands.at(-1)?.to ?? '');
            const from = last === null ? '' : typedAmount(last + 1);
            props.onChange([...props.bands, { key: nextKey(), from, to: '', terms: '' }]);
          }}
        >
          Add a band
        </Button>
      </span>
    </fieldset>
  );
}

/** Bands as a read-only table. */
export function BandsTable(props: { bands: Band[]; currency: string; locale: string }) {
  const show = (cents: number) => money(cents, props.currency, props.locale);
  return (
    <table className="parts">
      <caption className="visually-hidden">Bands</caption>
      <thead className="visually-hidden">
        <tr>
          <th scope="col">Amount</th>
          <th scope="col">Payments</th>
        </tr>
      </thead>
      <tbody>
        {props.bands.map((band) => (
          <tr key={band.from_amount}>
            <th scope="row" className="num">
              {show(band.from_amount)} to {show(band.to_amount)}
            </th>
            <td>
              {band.terms.join(', ')}{' '}
              {band.terms.length === 1 && band.terms[0] === 1 ? 'payment' : 'payments'}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
