import { lookup } from 'node:dns/promises';
import type { Server as HttpServer } from 'node:http';
import { type AddressInfo, createServer, isIP, type ListenOptions, type Server } from 'node:net';
import { promisify } from 'node:util';
import type { FastifyInstance } from 'fastify';

/** Another address on which an application listens. */
export type FurtherAddress = {
  /** Takes no more connections. Resolves when those that are open have ended. */
  close(): Promise<void>;
};

/**
 * Listens on the addresses of a host (`addressesOf`) and returns those after the first, which
 * `app.close()` does not close. Fastify would make a second server for the second address of
 * `localhost`: one without our handlers, for which `app.close()` does not wait. Fastify would also
 * ignore a failure of that server to listen (decision 0134).
 *
 * An address that this machine does not have is skipped, unless it is the only one.
 */
export async function listen(
  app: FastifyInstance,
  { host, port }: { host: string; port: number },
  backlog = 511,
): Promise<FurtherAddress[]> {
  const further: FurtherAddress[] = [];
  let missing: unknown;
  try {
    for (const address of await addressesOf(host)) {
      try {
        if (!app.server.listening) {
          await app.listen({ host: address, port, backlog });
          continue;
        }
        // With port 0 the system chose a port for the first address. The others must use the same
        // one.
        const options = { ...(app.server.address() as AddressInfo), host: address, backlog };
        further.push(await listenFurther(app.server, options));
        app.log.info({ address, port: options.port }, 'listening on a further address');
      } catch (error) {
        if (!isMissing(error)) throw error;
        missing = error;
      }
    }
    if (!app.server.listening) throw missing;
    return further;
  } catch (error) {
    await Promise.all(further.map((one) => one.close()));
    throw error;
  }
}

/** `localhost` means all its addresses. For any other name the first address counts, as in Node. */
async function addressesOf(host: string): Promise<string[]> {
  if (isIP(host)) return [host];
  const found = new Set((await lookup(host, { all: true })).map(({ address }) => address));
  return host === 'localhost' ? [...found] : [...found].slice(0, 1);
}

/** Listens on another address and passes all connections to the main server, which serves them. */
async function listenFurther(main: HttpServer, options: ListenOptions): Promise<FurtherAddress> {
  // Node's HTTP servers set the same options for their connections.
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    main.emit('connection', socket);
  });
  await listening(server, options);
  return { close: promisify(server.close.bind(server)) };
}

function listening(server: Server, options: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** A hosts file may name ::1 on a machine without IPv6. */
function isMissing(error: unknown): boolean {
  const { code } = error as { code?: string };
  return code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT';
}
