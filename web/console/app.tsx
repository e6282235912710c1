import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ComponentType, lazy, Suspense, useRef } from 'react';
import { Link, Redirect, Route, Switch, useLocation } from 'wouter';
import type { Session } from '#operating/console/session.schema.ts';
import { ApiError, get } from './api.ts';
import { Door, LinkSignIn, SignIn, takeWantedPage } from './pages/sign-in.tsx';
import { Card } from './parts/basics.tsx';
import { BulkActionsPanel } from './parts/bulk-actions.tsx';
import { ReauthenticationDialog } from './parts/reauthentication.tsx';
import { Bones, PageBoundary, Problem, State, Unread } from './parts/states.tsx';
import { keepTexts, returnTexts } from './parts/text.ts';
import { SessionProvider, useCan } from './session.tsx';
import { Shell } from './shell/shell.tsx';

const Register = lazy(() => import('./pages/register.tsx'));

// The token of a one-time link follows the `#`, which browsers do not send. The token is removed
// from the URL at once, so that the history does not keep it.
const linkToken = window.location.hash.slice(1);
if (linkToken !== '' && ['/register', '/sign-in'].includes(window.location.pathname)) {
  window.history.replaceState(null, '', window.location.pathname);
}

type Page = ComponentType<{ id: string }>;
const pages: { path: string; permission: string | null; page: Page }[] = [
  { path: '/', permission: 'overview.read', page: lazy(() => import('./pages/overview.tsx')) },
  { path: '/search', permission: null, page: lazy(() => import('./pages/search.tsx')) },
  {
    path: '/checkouts',
    permission: 'checkouts.read',
    page: lazy(() => import('./pages/checkouts.tsx')),
  },
  {
    path: '/checkouts/:id',
    permission: 'checkouts.read',
    page: lazy(() => import('./pages/checkout.tsx')),
  },
  {
    path: '/payment-links',
    permission: 'links.read',
    page: lazy(() => import('./pages/payment-links.tsx')),
  },
  {
    path: '/payment-links/:id',
    permission: 'links.read',
    page: lazy(() => import('./pages/payment-link.tsx')),
  },
  {
    path: '/messages',
    permission: 'messages.read',
    page: lazy(() => import('./pages/messages.tsx')),
  },
  {
    path: '/messages/:id',
    permission: 'messages.read',
    page: lazy(() => import('./pages/message.tsx')),
  },
  { path: '/refunds', permission: 'refunds.read', page: lazy(() => import('./pages/refunds.tsx')) },
  {
    path: '/overdue',
    permission: 'instalments.read',
    page: lazy(() => import('./pages/overdue.tsx')),
  },
  {
    path: '/callbacks',
    permission: 'callbacks.read',
    page: lazy(() => import('./pages/callbacks.tsx')),
  },
  {
    path: '/disputes',
    permission: 'disputes.read',
    page: lazy(() => import('./pages/disputes.tsx')),
  },
  {
    path: '/disputes/:id',
    permission: 'disputes.read',
    page: lazy(() => import('./pages/dispute.tsx')),
  },
  { path: '/payouts', permission: 'payouts.read', page: lazy(() => import('./pages/payouts.tsx')) },
  {
    path: '/payouts/:id',
    permission: 'payouts.read',
    page: lazy(() => import('./pages/payout.tsx')),
  },
  {
    path: '/statements',
    permission: 'payouts.read',
    page: lazy(() => import('./pages/statements.tsx')),
  },
  {
    path: '/statements/:id',
    permission: 'payouts.read',
    page: lazy(() => import('./pages/statement.tsx')),
  },
  { path: '/money', permission: 'money.read', page: lazy(() => import('./pages/money.tsx')) },
  { path: '/balance', permission: 'payouts.read', page: lazy(() => import('./pages/balance.tsx')) },
  {
    path: '/reconciliation',
    permission: 'differences.read',
    page: lazy(() => import('./pages/differences.tsx')),
  },
  {
    path: '/merchants',
    permission: 'merchants.read',
    page: lazy(() => import('./pages/merchants.tsx')),
  },
  {
    path: '/merchants/:id',
    permission: 'merchants.read',
    page: lazy(() => import('./pages/merchant.tsx')),
  },
  {
    path: '/integrations',
    permission: 'integrations.read',
    page: lazy(() => import('./pages/integrations.tsx')),
  },
  {
    path: '/integrations/:id',
    permission: 'integrations.read',
    page: lazy(() => import('./pages/integration.tsx')),
  },
  { path: '/alerts', permission: 'alerts.read', page: lazy(() => import('./pages/alerts.tsx')) },
  { path: '/audit', permission: 'audit.read', page: lazy(() => import('./pages/audit.tsx')) },
  { path: '/people', permission: 'people.read', page: lazy(() => import('./pages/people.tsx')) },
  { path: '/me', permission: null, page: lazy(() => import('./pages/me.tsx')) },
];

export function App() {
  return (
    <Switch>
      <Route path="/register">
        <PageBoundary>
          <Suspense>
            <Register token={linkToken} />
          </Suspense>
        </PageBoundary>
      </Route>
      <Route path="/sign-in">
        {linkToken === '' ? (
          <Redirect to={`/${window.location.search}`} />
        ) : (
          <LinkSignIn token={linkToken} />
        )}
      </Route>
      <Route>
        <Inside />
      </Route>
    </Switch>
  );
}

function Inside() {
  const person = useRef<string | null>(null);
  const [path] = useLocation();
  const { data, error, refetch } = useQuery({
    queryKey: ['/api/session'],
    queryFn: ({ signal }) => get<Session>('/api/session', {}, signal),
    refetchInterval: 60_000,
    retry: false,
  });
  if (error instanceof ApiError && error.status === 401) {
    keepTexts();
    return <SignIn ended={person.current !== null} />;
  }
  if (data) {
    if (path === '/' && person.current === null) {
      const wanted = takeWantedPage();
      if (wanted !== null) return <Redirect to={wanted} replace />;
    }
    // Another person signed in here, or in another tab. A full load discards what this tab has.
    if (person.current !== null && person.current !== data.person.id) {
      window.location.reload();
      return null;
    }
    person.current = data.person.id;
    returnTexts();
    return (
      <SessionProvider session={data}>
        <Shell>
          <BulkActionsPanel />
          {/* Another page, or the page of another row, begins without the texts typed on this
              one. */}
          <PageBoundary key={path}>
            <Suspense
              fallback={
                <Card>
                  <Bones lines={8} />
                </Card>
              }
            >
              <Pages />
            </Suspense>
          </PageBoundary>
        </Shell>
        <ReauthenticationDialog />
      </SessionProvider>
    );
  }
  return (
    <Door title={error ? 'The console' : 'One moment'}>
      <Unread of={{ error, refetch }} lines={3} />
    </Door>
  );
}

function Pages() {
  const can = useCan();
  return (
    <Switch>
      {pages.map(({ path, permission, page: Content }) => (
        <Route key={path} path={path}>
          {(parameters) =>
            path === '/' && !can('overview.read') ? (
              // The role `till` has no overview. Its work begins with the orders.
              <Redirect to="/checkouts" />
            ) : permission !== null && !can(permission) ? (
              <Card>
                <Problem error={new ApiError(403, 'forbidden', '')} page />
              </Card>
            ) : (
              <Content id={(parameters as { id?: string }).id ?? ''} />
            )
          }
        </Route>
      ))}
      <Route>
        <Card>
          <State
            icon="search"
            title="There is no such page"
            page
            actions={
              <Button variant="default" component={Link} href="/">
                Go to the overview
              </Button>
            }
          >
            The address may be mistyped, or the page has moved.
          </State>
        </Card>
      </Route>
    </Switch>
  );
}
