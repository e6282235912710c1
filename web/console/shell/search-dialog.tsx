import { TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import type { Hit, SearchAnswer } from '#operating/console/overview.schema.ts';
import { fetchList, needsReauthentication } from '../api.ts';
import { home, sentence, shortId, words } from '../format.ts';
import { Icon } from '../icons.tsx';
import { Money, Status, Time } from '../parts/basics.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { useSeesOneMerchant } from '../parts/merchants.tsx';

export function useHits(text: string) {
  const wanted = text.trim();
  return useQuery({
    queryKey: ['/api/search', wanted],
    queryFn: ({ signal }) =>
      fetchList<SearchAnswer>('/api/search', { q: wanted }, signal, 'Search'),
    enabled: wanted !== '',
    placeholderData: keepPreviousData,
  });
}

export function hrefOf(hit: Hit): string {
  if (hit.kind === 'dispute') return `/disputes/${hit.id}`;
  if (hit.kind === 'payout') return `/payouts/${hit.id}`;
  if (hit.kind === 'refund') return `/refunds?refund=${hit.id}`;
  if (hit.kind === 'callback') return `/callbacks?callback=${hit.id}`;
  if (hit.checkout_id !== null) return `/checkouts/${hit.checkout_id}`;
  if (hit.kind === 'merchant') return `/merchants/${hit.id}`;
  if (hit.kind === 'integration') return `/integrations/${hit.id}`;
  if (hit.kind === 'person') return `/people?person=${hit.id}`;
  if (hit.kind === 'bulk_action') return `/audit?subject=${hit.id}`;
  return `/alerts?alert=${hit.id}`;
}

/** The field in which the text was found, in words. */
export const matches: Record<Hit['matched'], string> = {
  id: 'by its id',
  order_reference: 'by order reference',
  email: 'by e-mail address',
  name: 'by name',
  last_four: 'by last four digits',
  gateway_reference: 'by gateway reference',
  payout_reference: 'by payout reference',
  merchant_name: 'by its name',
  amount: 'by amount',
  beginning: 'by the start of its id, reference or name',
};

/** Shown before a search, and after one that finds nothing. */
export const searchable =
  'Search for an order number, an id or a page (the first letters are enough), an amount (1500), a whole name or e-mail address, the last four digits of a card, or a reference of the gateway or of a payout.';

export const PageLine = ({ label }: { label: string }) => (
  <>
    <span className="quiet">Page</span>
    <strong>{label}</strong>
    <span />
  </>
);

export function HitLine({ hit }: { hit: Hit }) {
  const who = hit.name ?? hit.email;
  const seesOne = useSeesOneMerchant();
  return (
    <>
      <span className="quiet">{sentence(words(hit.kind))}</span>
      <span className="break">
        <strong>{hit.client_reference_id ?? hit.merchant_name ?? shortId(hit.id)}</strong>
        {who !== null && <span className="quiet"> · {who}</span>}
        {!seesOne && hit.merchant_name !== null && hit.client_reference_id !== null && (
          <span className="quiet"> · {hit.merchant_name}</span>
        )}
      </span>
      <span className="hit-facts">
        <span>{hit.status !== null && <Status of={hit.status} />}</span>
        <span>
          {hit.amount !== null && (
            <Money cents={hit.amount} currency={hit.currency ?? home.currency} />
          )}
        </span>
        <span className="quiet small">
          <Time
            at={hit.created_at}
            ahead={hit.clock_ahead_ms}
            {...(hit.time_zone && { zone: hit.time_zone })}
          />
        </span>
      </span>
    </>
  );
}

type Place = { href: string; label: string };

export function SearchDialog(props: { opened: boolean; close: () => void; places: Place[] }) {
  const { opened, close, places } = props;
  return (
    <Dialog opened={opened} close={close} size="xl" centered={false} title="Search">
      <Search close={close} places={places} />
    </Dialog>
  );
}

/** The pages of the console whose names begin with a text. */
export const pagesFor = (places: Place[], text: string) =>
  text.length < 2
    ? []
    : places.filter(({ label }) => label.toLowerCase().startsWith(text.toLowerCase()));

function Search({ close, places }: { close: () => void; places: Place[] }) {
  const [text, setText] = useState('');
  const [wanted] = useDebouncedValue(text, 150);
  const [here, setHere] = useState(0);
  const [, navigate] = useLocation();
  const { data, isFetching, error } = useHits(wanted);
  const found = wanted.trim() === '' ? [] : (data?.data ?? []);
  const pages = pagesFor(places, wanted.trim());
  const hits = [
    ...pages.map(({ href, label }) => ({
      key: `page ${href}`,
      href,
      line: <PageLine label={label} />,
    })),
    ...found.map((hit) => ({
      key: `${hit.kind} ${hit.id}`,
      href: hrefOf(hit),
      line: <HitLine hit={hit} />,
    })),
  ];
  const go = (href: string) => {
    close();
    navigate(href);
  };
  const said =
    wanted.trim() === ''
      ? searchable
      : error
        ? needsReauthentication(error)
          ? 'This needs your passkey. Search again to use it.'
          : 'The search did not work. Try again.'
        : isFetching && hits.length === 0
          ? 'Searching…'
          : hits.length === 0
            ? `Nothing matches “${wanted.trim()}”. ${searchable}`
            : '';
  return (
    <div className="stack tight">
      <TextInput
        data-autofocus
        size="md"
        aria-label="Search for an order, a shopper or an id"
        placeholder="Order, amount, name, e-mail, last four, id or page"
        leftSection={<Icon name="search" />}
        value={text}
        role="combobox"
        aria-expanded={hits.length > 0}
        aria-controls="search-hits"
        aria-activedescendant={hits[here] ? `hit-${here}` : undefined}
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setHere(0);
        }}
        onKeyDown={(event) => {
          if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
            event.preventDefault();
            const step = event.key === 'ArrowDown' ? 1 : -1;
            setHere((now) => Math.max(0, Math.min(hits.length - 1, now + step)));
          }
          if (event.key === 'Enter' && text.trim() !== '') {
            const hit = text === wanted && !isFetching ? hits[here] : undefined;
            go(hit ? hit.href : `/search?q=${encodeURIComponent(text.trim())}`);
          }
        }}
      />
      <p className="quiet small" role="status">
        {said}
      </p>
      <div className="hits" id="search-hits" role="listbox" aria-label="Results">
        {hits.map((hit, index) => (
          <Link
            key={hit.key}
            id={`hit-${index}`}
            href={hit.href}
            role="option"
            aria-selected={index === here}
            className={index === here ? 'here' : ''}
            onClick={close}
          >
            {hit.line}
          </Link>
        ))}
      </div>
    </div>
  );
}
