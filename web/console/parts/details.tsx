import { useQuery } from '@tanstack/react-query';
import { fetchList, needsReauthentication } from '../api.ts';
import { Card, PageHead } from './basics.tsx';
import { Unread } from './states.tsx';

const refreshMs = 30_000;

/** One object by its id, refreshed while it is shown. */
export function useDetails<Details>(path: string, id: string) {
  return useQuery({
    queryKey: [path, id],
    queryFn: ({ signal }) => fetchList<Details>(`${path}/${id}`, {}, signal, 'Show this page'),
    refetchInterval: ({ state }) => (needsReauthentication(state.error) ? false : refreshMs),
  });
}

/** Stands in for the page of one object while it is being read, or if it cannot be read. */
export function Waiting(props: {
  title: string;
  back: { href: string; label: string };
  of: { error: unknown; refetch: () => unknown };
}) {
  return (
    <>
      <PageHead title={props.title} back={props.back} />
      <Card>
        <Unread of={props.of} lines={8} />
      </Card>
    </>
  );
}
