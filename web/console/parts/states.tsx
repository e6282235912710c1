import { Button } from '@mantine/core';
import { Component, type ReactNode } from 'react';
import { Link } from 'wouter';
import { ApiError, needsReauthentication } from '../api.ts';
import { Icon, type IconName } from '../icons.tsx';

export function State(props: {
  icon: IconName;
  title: string;
  children?: ReactNode;
  actions?: ReactNode;
  /** Whether the page shows nothing else. */
  page?: boolean | undefined;
}) {
  const Title = props.page ? 'h1' : 'h2';
  return (
    <div className="state">
      <Icon name={props.icon} />
      <Title>{props.title}</Title>
      {props.children && <p>{props.children}</p>}
      {props.actions && <div className="row-of">{props.actions}</div>}
    </div>
  );
}

/** Says what went wrong while reading a page or a list, and what to do next. */
export function Problem(props: {
  error: unknown;
  retry?: () => void;
  /** Leads from a page that is not part of a list to its first page. */
  goToFirst?: () => void;
  page?: boolean;
}) {
  const { error, retry, goToFirst, page } = props;
  const again = retry && (
    <Button variant="default" onClick={retry}>
      Try again
    </Button>
  );
  if (needsReauthentication(error)) {
    return (
      <State icon="key" title="This needs your passkey" actions={again}>
        You have read very many pages in an hour. Confirm that it is you to read more.
      </State>
    );
  }
  if (error instanceof ApiError && error.status === 403) {
    return (
      <State
        icon="lock"
        title="Your roles do not include this page"
        page={page}
        actions={
          <Button variant="default" component={Link} href="/me">
            See your roles
          </Button>
        }
      >
        Ask an administrator for the role that you need.
      </State>
    );
  }
  if (error instanceof ApiError && error.status === 404) {
    return (
      <State icon="search" title="There is nothing here">
        It does not exist, or it belongs to a merchant that you may not see.
      </State>
    );
  }
  if (error instanceof ApiError && error.status === 429) {
    return (
      <State icon="overdue" title="Too many requests" actions={again}>
        Wait a moment. The page tries again automatically.
      </State>
    );
  }
  if (error instanceof ApiError && error.status === 0) {
    return (
      <State icon="warning" title="The service cannot be reached" actions={again}>
        Nothing was changed. The page tries again automatically.
      </State>
    );
  }
  const first = error instanceof ApiError && error.code === 'bad_cursor' && goToFirst && (
    <Button variant="default" onClick={goToFirst}>
      First page
    </Button>
  );
  return (
    <State icon="warning" title="This could not be read" actions={first || again}>
      {error instanceof Error ? error.message : 'The service did not say why.'}
    </State>
  );
}

/**
 * Stands in for a page that the browser cannot load or draw. An open tab asks for files of the
 * version that it was loaded from, and a later version of the service does not have them.
 */
export class PageBoundary extends Component<{ children: ReactNode }, { isBroken: boolean }> {
  override state = { isBroken: false };
  static getDerivedStateFromError() {
    return { isBroken: true };
  }
  override render() {
    if (!this.state.isBroken) return this.props.children;
    return (
      <div className="card">
        <State
          icon="warning"
          title="This page could not be loaded"
          page
          actions={<Button onClick={() => window.location.reload()}>Reload the console</Button>}
        >
          The console may have been updated, or the connection was lost. Reload it to see what is
          saved.
        </State>
      </div>
    );
  }
}

/** Grey lines where a card's text will be. */
export function Bones({ lines = 4 }: { lines?: number }) {
  return (
    <div className="stack" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} className="bone" style={{ width: `${90 - ((index * 23) % 50)}%` }} />
      ))}
    </div>
  );
}

/** Stands in for data that has not arrived: grey lines, or the reason why it cannot be read. */
export function Unread(props: { of: { error: unknown; refetch: () => unknown }; lines: number }) {
  const { error, refetch } = props.of;
  if (error) return <Problem error={error} retry={() => void refetch()} />;
  return <Bones lines={props.lines} />;
}
