import { useQuery } from '@tanstack/react-query';
import { createContext, type ReactNode, useContext, useEffect, useState } from 'react';
import { useSearch } from 'wouter';
import type { Counts } from '#operating/console/overview.schema.ts';
import type { Session } from '#operating/console/session.schema.ts';
import { get } from './api.ts';

const SessionContext = createContext<Session | null>(null);

type Choice = { merchant: string | null; choose: (merchant: string | null) => void };
const ChoiceContext = createContext<Choice>({ merchant: null, choose: () => {} });
const choiceKey = 'tranche-merchant';

export function SessionProvider({ session, children }: { session: Session; children: ReactNode }) {
  const [chosen, setChosen] = useState(() => window.localStorage.getItem(choiceKey));
  const { scope } = session;
  // Ignore a choice that another person made in this browser, and a merchant that has been removed
  // since.
  const isTheirs = (id: string | null): id is string =>
    scope !== 'all' && scope.length > 1 && id !== null && scope.includes(id);
  const choose = (merchant: string | null) => {
    if (merchant === null) window.localStorage.removeItem(choiceKey);
    else window.localStorage.setItem(choiceKey, merchant);
    setChosen(merchant);
  };
  // A link may name the merchant whose rows it shows. That merchant becomes the choice, so that the
  // name above the rows is that merchant's.
  const named = new URLSearchParams(useSearch()).get('merchant');
  const wanted = isTheirs(named) ? named : null;
  useEffect(() => {
    if (wanted === null) return;
    window.localStorage.setItem(choiceKey, wanted);
    setChosen(wanted);
  }, [wanted]);
  const merchant = wanted ?? (isTheirs(chosen) ? chosen : null);
  return (
    <SessionContext value={session}>
      <ChoiceContext value={{ merchant, choose }}>{children}</ChoiceContext>
    </SessionContext>
  );
}

/** The merchant that a person with several merchants has chosen. Null shows all of theirs. */
export const useChoice = (): Choice => useContext(ChoiceContext);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error('no session');
  return session;
}

/**
 * The only merchant that the person works for, or the chosen one. Null for the service's staff, and
 * while a person with several merchants has chosen none.
 */
export function useShop(): string | null {
  const { scope } = useSession();
  const { merchant } = useChoice();
  if (scope === 'all') return null;
  return scope.length === 1 ? (scope[0] ?? null) : merchant;
}

/** Whether the person sees all merchants, as the service's staff do. */
export const useIsStaff = (): boolean => useSession().scope === 'all';

/** Whether the person may do something. The server checks again. */
export function useCan(): (permission: string) => boolean {
  const { permissions } = useSession();
  return (permission) => permissions.includes(permission);
}

export function useCounts() {
  const can = useCan();
  const { merchant } = useChoice();
  const query = merchant === null ? {} : { merchant };
  return useQuery({
    enabled: can('overview.read'),
    queryKey: ['/api/counts', query],
    queryFn: ({ signal }) => get<Counts>('/api/counts', query, signal),
    refetchInterval: 30_000,
  });
}
