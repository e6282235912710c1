import { useQuery } from '@tanstack/react-query';
import { get } from '../api.ts';
import { Card, PageHead } from './basics.tsx';
import { Bones, Problem } from './states.tsx';

/** One thing by its id, refreshed while it is looked at. */
export function useDetails<Details>(path: string, id: string) {
  return useQuery({
    queryKey: [path, id],
    queryFn: ({ signal }) => get<Details>(`${path}/${id}`, {}, signal),
    refetchInterval: 30_000,
  });
}

/** The page of one thing while it is read, and when it cannot be. */
export function Waiting(props: {
  title: string;
  back: { href: string; label: string };
  of: { error: unknown; refetch: () => unknown };
}) {
  const { error, refetch } = props.of;
  return (
    <>
      <PageHead title={props.title} back={props.back} />
      <Card>
        {error ? <Problem error={error} retry={() => void refetch()} /> : <Bones lines={8} />}
      </Card>
    </>
  );
}
