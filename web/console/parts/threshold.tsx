import { Select, TextInput } from '@mantine/core';
import type { MerchantDetails } from '#operating/operations/merchant.schema.ts';
import { parseAmount, typedAmount } from './amount.ts';

type Own = MerchantDetails['four_eyes_above'];

/** A threshold as a person chooses it. `amount` is what they typed. */
export type TypedThreshold = { kind: 'default' | 'own' | 'none'; amount: string };

export const typedThreshold = (own: Own): TypedThreshold =>
  typeof own === 'number'
    ? { kind: 'own', amount: typedAmount(own) }
    : { kind: own ?? 'default', amount: '' };

/** The merchant's own threshold; undefined if the text is not an amount. */
export function readThreshold({ kind, amount }: TypedThreshold): Own | undefined {
  if (kind !== 'own') return kind === 'none' ? 'none' : null;
  return parseAmount(amount) ?? undefined;
}

/** Says which threshold applies, and where it comes from. */
export function describeThreshold(
  { four_eyes_above: own, four_eyes_default: common }: ThresholdOf,
  show: (cents: number) => string,
): string {
  if (own === 'none') return 'For no refunds, set for this merchant';
  if (own !== null) return `For refunds above ${show(own)}, set for this merchant`;
  return common === null
    ? 'For no refunds, the default for all merchants'
    : `For refunds above ${show(common)}, the default for all merchants`;
}

type ThresholdOf = Pick<MerchantDetails, 'four_eyes_above' | 'four_eyes_default'>;

/** Whether fewer refunds need two people than before. */
export function isLifting(merchant: ThresholdOf, wanted: Own): boolean {
  const amountOf = (own: Own) =>
    own === 'none' ? Infinity : (own ?? merchant.four_eyes_default ?? Infinity);
  return amountOf(wanted) > amountOf(merchant.four_eyes_above);
}

export function ThresholdForm({
  value,
  byDefault,
  refusal,
  onChange,
}: {
  value: TypedThreshold;
  /** The default threshold, in words. */
  byDefault: string;
  refusal: string | null;
  onChange: (value: TypedThreshold) => void;
}) {
  const isOwn = value.kind === 'own';
  const isBad = isOwn && value.amount.trim() !== '' && readThreshold(value) === undefined;
  return (
    <>
      <Select
        label="Two people approve refunds"
        description="One asks or approves first, another approves."
        allowDeselect={false}
        data={[
          { value: 'default', label: byDefault },
          { value: 'own', label: 'Above an amount set for this merchant' },
          { value: 'none', label: 'Never: one person is enough for any amount' },
        ]}
        value={value.kind}
        error={isOwn ? null : refusal}
        onChange={(kind) => kind && onChange({ ...value, kind: kind as TypedThreshold['kind'] })}
      />
      {isOwn && (
        <TextInput
          label="Two people approve refunds above"
          leftSection="R"
          inputMode="decimal"
          value={value.amount}
          error={isBad ? 'Enter an amount such as 5000,00.' : refusal}
          onChange={(event) => onChange({ ...value, amount: event.currentTarget.value })}
        />
      )}
    </>
  );
}
