import { Select, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { MerchantsPage } from '../../../src/console/merchant.schema.ts';
import { get } from '../api.ts';
import { useSession } from '../session.tsx';
import { useFilters } from '../url.ts';

/** The views of a list: one of them is always chosen. */
export function Tabs(props: {
  name: string;
  label: string;
  options: { value: string; label: string }[];
  fallback?: string;
}) {
  const [filters, setFilters] = useFilters();
  const chosen = filters[props.name] ?? props.fallback ?? '';
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot scroll sideways everywhere.
    <div className="tabs" role="group" aria-label={props.label}>
      {props.options.map(({ value, label }) => (
        <button
          key={value}
          type="button"
          aria-pressed={chosen === value}
          onClick={() => setFilters({ [props.name]: value === props.fallback ? '' : value })}
        >
          {label}
        </button>
      ))}
    </div>
  );
}

export function useMerchants() {
  return useQuery({
    queryKey: ['/api/merchants', 'names'],
    queryFn: ({ signal }) => get<MerchantsPage>('/api/merchants', { limit: 100 }, signal),
    staleTime: 60_000,
    retry: false,
  });
}

/** Only for people who see more than one merchant. */
export function MerchantFilter() {
  const [filters, setFilters] = useFilters();
  const { scope } = useSession();
  const { data } = useMerchants();
  if (scope !== 'all' && scope.length === 1) return null;
  if (!data || data.data.length < 2) return null;
  return (
    <Select
      aria-label="Merchant"
      placeholder="All merchants"
      data={data.data.map(({ id, name }) => ({ value: id, label: name }))}
      value={filters.merchant ?? null}
      onChange={(value) => setFilters({ merchant: value ?? '' })}
      searchable
      clearable
      w={200}
    />
  );
}

export function DayFilter({ name, label }: { name: string; label: string }) {
  const [filters, setFilters] = useFilters();
  return (
    <TextInput
      type="date"
      aria-label={label}
      leftSection={<span className="small quiet">{label}</span>}
      leftSectionWidth={48}
      value={filters[name] ?? ''}
      onChange={(event) => setFilters({ [name]: event.currentTarget.value })}
      w={184}
    />
  );
}

/** Filters when the person presses Enter or leaves the field. */
export function TextFilter(props: { name: string; label: string; placeholder: string }) {
  const [filters, setFilters] = useFilters();
  const value = filters[props.name] ?? '';
  const [typed, setTyped] = useState<string | null>(null);
  const commit = () => {
    if (typed !== null && typed !== value) setFilters({ [props.name]: typed.trim() });
    setTyped(null);
  };
  return (
    <TextInput
      aria-label={props.label}
      placeholder={props.placeholder}
      value={typed ?? value}
      onChange={(event) => setTyped(event.currentTarget.value)}
      onBlur={commit}
      onKeyDown={(event) => event.key === 'Enter' && commit()}
      w={200}
    />
  );
}
