import './mantine.css';
import '../tokens.css';
import './console.css';
import { MantineProvider } from '@mantine/core';
import { Notifications } from '@mantine/notifications';
import { QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { ApiError, needsReauthentication, noteInput } from './api.ts';
import { App } from './app.tsx';
import { theme } from './theme.ts';

for (const kind of ['pointerdown', 'keydown', 'wheel', 'touchstart']) {
  window.addEventListener(kind, noteInput, { passive: true, capture: true });
}

// An automatic refresh would open the dialog for the passkey again, which the person has just
// closed. They can retry on the page.
const asksNoPasskey = ({ state }: { state: { error: unknown } }) =>
  !needsReauthentication(state.error);

const client = new QueryClient({
  queryCache: new QueryCache({
    // The session has ended. Requesting it again shows the sign-in page.
    onError: (error, query) => {
      if (
        error instanceof ApiError &&
        error.status === 401 &&
        query.queryKey[0] !== '/api/session'
      ) {
        void client.invalidateQueries({ queryKey: ['/api/session'] });
      }
    },
  }),
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      refetchOnWindowFocus: asksNoPasskey,
      refetchOnReconnect: asksNoPasskey,
      // A refused request will be refused again.
      retry: (failures, error) =>
        failures < 2 && (!(error instanceof ApiError) || error.status === 0 || error.status >= 500),
    },
  },
});

const root = document.getElementById('root');
if (!root) throw new Error('the page has no root');
createRoot(root).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      defaultColorScheme="auto"
      // Both settings would insert <style> elements, which our content security policy refuses. The
      // style sheet has the variables, and we use none of those classes.
      withCssVariables={false}
      withGlobalClasses={false}
    >
      <QueryClientProvider client={client}>
        <Notifications position="bottom-right" autoClose={6_000} />
        <App />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
