import { MultiSelect, Select } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import type { MerchantNames } from '#operating/console/merchant-name.schema.ts';
import { get } from '../api.ts';
import { useCan, useChoice, useSession } from '../session.tsx';

// There may be thousands of merchants, so a field only offers those whose names begin with what the
// person types.

type Named = MerchantNames['data'][number];
const path = '/api/merchant-names';
const typingMs = 150;
/** How many ids the server takes in one request. */
const idsMax = 100;

/** The first merchants whose names begin with a text. */
export function useFoundMerchants(text: string) {
  const [q] = useDebouncedValue(text.trim(), typingMs);
  return useQuery({
    queryKey: [path, q],
    queryFn: async ({ signal }) => (await get<MerchantNames>(path, { q }, signal)).data,
    placeholderData: keepPreviousData,
    staleTime: 60_000,
    retry: false,
  });
}

/** Whether the person sees only one merchant, so that rows need not name it. */
export function useSeesOneMerchant(): boolean {
  const { scope } = useSession();
  const { merchant } = useChoice();
  const { data } = useFoundMerchants('');
  return merchant !== null || (scope !== 'all' && scope.length === 1) || data?.length === 1;
}

/** The names of merchants by their ids. */
export function useMerchantNames(ids: string[]) {
  const sorted = [...ids].sort();
  return useQuery({
    queryKey: [path, 'ids', sorted],
    queryFn: async ({ signal }) => {
      const found: Named[] = [];
      for (let from = 0; from < sorted.length; from += idsMax) {
        const some = sorted.slice(from, from + idsMax).join(',');
        found.push(...(await get<MerchantNames>(path, { ids: some }, signal)).data);
      }
      return found;
    },
    enabled: ids.length > 0,
    placeholderData: keepPreviousData,
    staleTime: 60_000,
    retry: false,
  });
}

/** The options of a field: the merchants that were found, and those already chosen. */
function useOptions(typed: string, chosen: string[]): { value: string; label: string }[] {
  const { data: names } = useMerchantNames(chosen);
  const labels = new Map((names ?? []).map(({ id, name }) => [id, name]));
  const isChosen = chosen.some((id) => labels.get(id) === typed);
  // The field shows the chosen merchant's name, which must not be searched for.
  const { data: found } = useFoundMerchants(isChosen ? '' : typed);
  for (const { id, name } of found ?? []) labels.set(id, name);
  // Until the name is known, the field needs an option to show.
  for (const id of chosen) if (!labels.has(id)) labels.set(id, '…');
  return [...labels].map(([value, label]) => ({ value, label }));
}

const beginsWith = (label: string, typed: string) =>
  label.toLowerCase().startsWith(typed.trim().toLowerCase());

type Option = { value: string; label: string };

/** The name of a row's merchant, which leads to its page if the person may open that. */
export function MerchantLink({ of: row }: { of: { merchant_id: string; merchant_name: string } }) {
  const can = useCan();
  if (!can('merchants.read')) return row.merchant_name;
  return <Link href={`/merchants/${row.merchant_id}`}>{row.merchant_name}</Link>;
}

export function MerchantSelect(props: {
  name: string;
  /** Whether the label is visible above the field. Otherwise only screen readers read it. */
  shown?: boolean;
  placeholder?: string;
  value: string | null;
  onChange: (value: string | null, name: string | null) => void;
  clearable?: boolean;
  w?: number;
}) {
  const [typed, setTyped] = useState('');
  const { value } = props;
  const options = useOptions(typed, value === null ? [] : [value]);
  const label = options.find((one) => one.value === value)?.label;
  return (
    <Select
      {...(props.shown ? { label: props.name } : { 'aria-label': props.name })}
      placeholder={props.placeholder ?? 'Type the beginning of a name'}
      data={options}
      value={value}
      onChange={(next, option) => props.onChange(next, option?.label ?? null)}
      searchable
      searchValue={typed}
      onSearchChange={setTyped}
      filter={({ options: all, search }) =>
        search === label ? all : (all as Option[]).filter((one) => beginsWith(one.label, search))
      }
      nothingFoundMessage="No merchant’s name begins with this"
      clearable={props.clearable ?? false}
      {...(props.w && { w: props.w })}
    />
  );
}

export function MerchantsSelect(props: {
  name: string;
  value: string[];
  onChange: (value: string[]) => void;
}) {
  const [typed, setTyped] = useState('');
  const options = useOptions(typed, props.value);
  return (
    <MultiSelect
      label={props.name}
      placeholder="Type the beginning of a name"
      data={options}
      value={props.value}
      onChange={props.onChange}
      searchable
      searchValue={typed}
      onSearchChange={setTyped}
      filter={({ options: all, search }) =>
        (all as Option[]).filter((one) => beginsWith(one.label, search))
      }
      nothingFoundMessage="No merchant’s name begins with this"
    />
  );
}
