import { useQuery } from '@tanstack/react-query';
import { get } from '../api.ts';
import { Card, PageHead } from './basics.tsx';
import { Unread } from './states.tsx';

/** One object by its id, refreshed while it is shown. */
export function useDetails<Details>(path: string, id: string) {
  return useQuery({
    queryKey: [path, id],
    queryFn: ({ signal }) => get<Details>(`${path}/${id}`, {}, signal),
    refetchInterval: 30_000,
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
