import { TextInput } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import { Icon } from '../icons.tsx';
import { Card, PageHead } from '../parts/basics.tsx';
import { Bones, Problem, State } from '../parts/states.tsx';
import { HitLine, hrefOf, matches, useHits } from '../shell/search-dialog.tsx';
import { useFilters } from '../url.ts';

export default function SearchPage() {
  const [filters, setFilters] = useFilters();
  const wanted = filters.q ?? '';
  const [typed, setTyped] = useState(wanted);
  const { data, error, isLoading, refetch } = useHits(wanted);
  const hits = data?.data ?? [];
  return (
    <>
      <PageHead title="Search" />
      <form
        onSubmit={(event) => {
          event.preventDefault();
          setFilters({ q: typed.trim() });
        }}
      >
        <TextInput
          size="md"
          aria-label="Search for an order, a shopper or an id"
          placeholder="Order, e-mail, name, last four, any id"
          leftSection={<Icon name="search" />}
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
          autoComplete="off"
          spellCheck={false}
        />
      </form>
      {wanted === '' ? (
        <Card>
          <State icon="search" title="Find a checkout, a refund, a merchant">
            Type a whole value and press Enter: an order reference, e-mail address, name, the last
            four digits of a card, any id, or a reference of the gateway or of a payout.
          </State>
        </Card>
      ) : isLoading ? (
        <Card>
          <Bones />
        </Card>
      ) : error ? (
        <Card>
          <Problem error={error} retry={() => void refetch()} />
        </Card>
      ) : hits.length === 0 ? (
        <Card>
          <State icon="search" title={`Nothing matches “${wanted}”`}>
            Search finds whole values, not parts of them. It shows only merchants that you may see.
          </State>
        </Card>
      ) : (
        <Card title={`Found ${hits.length}`} bare>
          <ul className="hits" style={{ padding: 8, maxHeight: 'none' }}>
            {hits.map((hit) => (
              <li key={`${hit.kind} ${hit.id}`} title={`Found ${matches[hit.matched]}`}>
                <Link href={hrefOf(hit)}>
                  <HitLine hit={hit} />
                </Link>
              </li>
            ))}
          </ul>
        </Card>
      )}
    </>
  );
}
