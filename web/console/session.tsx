import { useQuery } from '@tanstack/react-query';
import { createContext, type ReactNode, useContext } from 'react';
import type { Counts } from '#operating/console/overview.schema.ts';
import type { Session } from '#operating/console/session.schema.ts';
import { get } from './api.ts';

const SessionContext = createContext<Session | null>(null);

export function SessionProvider(props: { session: Session; children: ReactNode }) {
  return <SessionContext value={props.session}>{props.children}</SessionContext>;
}

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error('no session');
  return session;
}

/** Whether the person may do something. The server decides again. */
export function useCan(): (permission: string) => boolean {
  const { permissions } = useSession();
  return (permission) => permissions.includes(permission);
}

export function useCounts() {
  return useQuery({
    queryKey: ['/api/counts'],
    queryFn: ({ signal }) => get<Counts>('/api/counts', {}, signal),
    refetchInterval: 30_000,
  });
}
