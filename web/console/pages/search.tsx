import { TextInput } from '@mantine/core';
import { useEffect } from 'react';
import { Link } from 'wouter';
import { Icon } from '../icons.tsx';
import { Card, PageHead } from '../parts/basics.tsx';
import { Bones, Problem, State } from '../parts/states.tsx';
import { useText } from '../parts/text.ts';
import {
  HitLine,
  hrefOf,
  matches,
  PageLine,
  searchable,
  useHits,
} from '../shell/search-dialog.tsx';
import { usePagesFor } from '../shell/shell.tsx';
import { useFilters } from '../url.ts';

export default function SearchPage() {
  const [filters, setFilters] = useFilters();
  const wanted = filters.q ?? '';
  const [typed, typedField, setTyped] = useText(wanted);
  // The search above the page, and the browser's back button, change what is searched for.
  useEffect(() => setTyped(wanted), [wanted, setTyped]);
  const { data, error, isLoading, refetch } = useHits(wanted);
  const hits = data?.data ?? [];
  const pages = usePagesFor(wanted);
  const found = pages.length + hits.length;
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
          placeholder="Order, amount, name, e-mail, last four, id or page"
          leftSection={<Icon name="search" />}
          {...typedField}
          autoComplete="off"
          spellCheck={false}
        />
      </form>
      {wanted === '' ? (
        <Card>
          <State icon="search" title="Find a checkout, a refund, a merchant">
            {searchable}
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
      ) : found === 0 ? (
        <Card>
          <State icon="search" title={`Nothing matches “${wanted}”`}>
            {searchable} It shows only merchants that you may see.
          </State>
        </Card>
      ) : (
        <Card
          title={data?.more ? `Found ${found} or more. Type more to find fewer` : `Found ${found}`}
          bare
        >
          <ul className="hits" style={{ padding: 8, maxHeight: 'none' }}>
            {pages.map(({ href, label }) => (
              <li key={href}>
                <Link href={href}>
                  <PageLine label={label} />
                </Link>
              </li>
            ))}
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
