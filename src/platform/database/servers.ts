import pg from 'pg';

// The driver accepts one host in a URL. With several (`a:5432,b:5432`), this chooses the database
// server that takes writes, as libpq does with `target_session_attrs=read-write`.

/** A URL for each host that `url` names, in the same order. Null if `url` is none of PostgreSQL. */
export function serversOf(url: string): string[] | null {
  const parts = /^(postgres(?:ql)?:\/\/(?:[^@/?#]*@)?)([^/?#]*)(.*)$/s.exec(url);
  if (parts === null) return null;
  const [, begin = '', hosts = '', end = ''] = parts;
  const servers = hosts.split(',').map((host) => `${begin}${host}${end}`);
  return servers.every((server) => URL.canParse(server)) ? servers.map(withoutChoice) : null;
}

/** Removes what only libpq understands: the driver would send it to the server as a setting. */
function withoutChoice(server: string): string {
  if (!server.includes('target_session_attrs')) return server;
  const url = new URL(server);
  url.searchParams.delete('target_session_attrs');
  return url.href;
}

/** How long opening a connection may take, unless its URL has a `connect_timeout`. */
const connectSeconds = 5;

/** A longer time would be no limit, and timers overflow after 24 days. */
const connectSecondsMax = 600;

/** Reads libpq's `connect_timeout`, in seconds, which the driver ignores. */
export function connectMillisecondsOf(url: string): number {
  const [first = ''] = serversOf(url) ?? [];
  const seconds = Number(URL.parse(first)?.searchParams.get('connect_timeout'));
  return 1000 * (seconds > 0 ? Math.min(seconds, connectSecondsMax) : connectSeconds);
}

type Connected = (error: Error | null, client?: pg.Client) => void;

export type Servers = {
  /** Its instances connect to `server`, a number among the hosts, or else to the current server. */
  Client: new (
    config?: pg.ClientConfig,
    server?: number,
  ) => pg.Client;
  of(client: pg.ClientBase): number;
  /**
   * Call it when the server of this connection takes no writes: the next connection tries the next
   * server.
   */
  skip(client: pg.ClientBase): void;
};

/** With several servers, one that does not answer must not delay a new connection for long. */
const nextMilliseconds = 2_000;

/**
 * New connections go to the current server. If that server refuses a connection, does not answer or
 * takes no writes, the next server becomes the current one.
 */
export function chooseServers(urls: string[]): Servers {
  let current = 0;
  const chosen = new WeakMap<object, number>();
  const skip = (client: object) => {
    // Connections that were opened together fail together. Count them once.
    if (chosen.get(client) === current) current = (current + 1) % urls.length;
  };
  class Client extends pg.Client {
    constructor(config: pg.ClientConfig = {}, server = current) {
      const others = urls.length > 1 && { connectionTimeoutMillis: nextMilliseconds };
      super({ ...config, connectionString: urls[server], ...others });
      chosen.set(this, server);
      // The pool passes a callback.
      const connect = super.connect.bind(this) as (callback: Connected) => void;
      this.connect = ((callback: Connected) => {
        connect((error, client) => {
          if (error) skip(this);
          callback(error, client);
        });
      }) as never;
    }
  }
  return { Client, of: (client) => chosen.get(client) ?? 0, skip };
}
