import { TextInput, type TextInputProps } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { centsIn } from '#platform/shared/money.ts';
import { home } from '../format.ts';
import { useSession } from '../session.tsx';
import { useFilters } from '../url.ts';
import {
  MerchantSelect,
  useFoundMerchants,
  useMerchantNames,
  useSeesOneMerchant,
} from './merchants.tsx';

/** The views of a list. One of them is always chosen. */
export function Tabs(props: {
  name: string;
  label: string;
  options: { value: string; label: string }[];
  fallback?: string;
  /** Filters that apply only to this view. They are removed when the view changes. */
  ends?: string[];
}) {
  const [filters, setFilters] = useFilters();
  const ended = Object.fromEntries((props.ends ?? []).map((name) => [name, '']));
  const chosen = filters[props.name] ?? props.fallback ?? '';
  const strip = useRef<HTMLDivElement>(null);
  const place = props.options.findIndex(({ value }) => value === chosen);
  // On a phone the tabs are wider than the screen, so the chosen tab is scrolled to the centre.
  useEffect(() => {
    const tabs = strip.current;
    const tab = tabs?.children[place] as HTMLElement | undefined;
    if (tabs && tab) tabs.scrollLeft = tab.offsetLeft - (tabs.clientWidth - tab.offsetWidth) / 2;
  }, [place]);
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot scroll sideways everywhere.
    <div className="tabs" role="group" aria-label={props.label} ref={strip}>
      {props.options.map(({ value, label }) => (
        <button
          key={value}
          type="button"
          aria-pressed={chosen === value}
          onClick={() =>
            setFilters({ ...ended, [props.name]: value === props.fallback ? '' : value })
          }
        >
          {label}
        </button>
      ))}
    </div>
  );
}

/**
 * Shown only to staff who see all merchants, if there is more than one. Anyone else who has several
 * merchants chooses one in the sidebar instead.
 */
export function MerchantFilter() {
  const [filters, setFilters] = useFilters();
  const { scope } = useSession();
  const { data } = useFoundMerchants('');
  const seesOne = useSeesOneMerchant();
  if (scope !== 'all' || seesOne || !data || data.length < 2) return null;
  return (
    <MerchantSelect
      name="Merchant"
      placeholder="All merchants"
      value={filters.merchant ?? null}
      onChange={(value) => setFilters({ merchant: value ?? '' })}
      clearable
      w={200}
    />
  );
}

/** The first and the last day of a list, in the time zone in which its times are shown. */
export function DayFilters() {
  const [filters] = useFilters();
  const { scope } = useSession();
  const only = filters.merchant ?? (scope !== 'all' && scope.length === 1 ? scope[0] : undefined);
  const { data } = useMerchantNames(only === undefined ? [] : [only]);
  const zone = data?.[0]?.time_zone ?? home.time_zone;
  return (
    <span className="days">
      <DayFilter name="from" label="From" zone={zone} />
      <DayFilter name="to" label="To" zone={zone} />
      <span className="quiet small">{zone.replace(/^.*\//, '').replaceAll('_', ' ')} time</span>
    </span>
  );
}

function DayFilter({ name, label, zone }: { name: string; label: string; zone: string }) {
  const [filters, setFilters] = useFilters();
  return (
    <DayInput
      aria-label={label}
      title={`Days in the time of ${zone}`}
      leftSection={<span className="small quiet">{label}</span>}
      leftSectionWidth={48}
      day={filters[name] ?? ''}
      onDay={(day) => setFilters({ [name]: day })}
      w={184}
    />
  );
}

/**
 * A field for a day. While a person types `2026`, the browser first reports the year `0002`, so a
 * day counts only once the server accepts its year.
 */
export function DayInput({
  day,
  onDay,
  ...rest
}: Omit<TextInputProps, 'type' | 'value' | 'onChange'> & {
  day: string;
  onDay: (day: string) => void;
}) {
  const [typed, setTyped] = useState<string | null>(null);
  return (
    <TextInput
      {...rest}
      type="date"
      min="2000-01-01"
      max="2199-12-31"
      value={typed ?? day}
      onChange={(event) => {
        const { value, validity } = event.currentTarget;
        setTyped(validity.valid ? null : value);
        if (validity.valid) onDay(value);
      }}
      onBlur={() => setTyped(null)}
    />
  );
}

/** An amount as people write it. The URL contains the amount in cents. */
export const AmountFilter = () => (
  <TextFilter
    name="amount"
    label="Amount"
    placeholder="Amount"
    width={128}
    read={(text) => String(centsIn(text.trim()) || '')}
    show={(cents) => (Number(cents) / 100).toFixed(2).replace('.', ',')}
  />
);

/** Applies the filter when the person presses Enter or leaves the field. */
export function TextFilter(props: {
  name: string;
  label: string;
  placeholder: string;
  width?: number;
  /** Converts between the text in the field and the value in the URL. */
  read?: (text: string) => string;
  show?: (value: string) => string;
}) {
  const [filters, setFilters] = useFilters();
  const kept = filters[props.name] ?? '';
  const value = kept !== '' && props.show ? props.show(kept) : kept;
  const [typed, setTyped] = useState<string | null>(null);
  const [isBad, setBad] = useState(false);
  const commit = () => {
    if (typed === null) return;
    const wanted = props.read ? props.read(typed) : typed.trim();
    // A text that cannot be read stays, so that the person can correct it.
    const isUnread = wanted === '' && typed.trim() !== '';
    setBad(isUnread);
    if (isUnread) return;
    if (typed !== value) setFilters({ [props.name]: wanted });
    setTyped(null);
  };
  return (
    <TextInput
      aria-label={props.label}
      placeholder={props.placeholder}
      value={typed ?? value}
      error={isBad}
      onChange={(event) => {
        setBad(false);
        setTyped(event.currentTarget.value);
      }}
      onBlur={commit}
      onKeyDown={(event) => event.key === 'Enter' && commit()}
      w={props.width ?? 200}
    />
  );
}
