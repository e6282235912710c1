import http from 'node:http';
import https from 'node:https';
import type { Config } from '#config.ts';
import { tlsAt, tlsLimits } from '#platform/http/server-options.ts';

/** Metrics are only for the operator, so they have their own port, on loopback by default. */
export async function serveMetrics(
  { metrics, tls: given }: Pick<Config, 'metrics' | 'tls'>,
  read: () => Promise<string>,
): Promise<{ url: string; close(): Promise<void> }> {
  const answer: http.RequestListener = (request, response) => {
    if (request.url !== '/metrics') {
      response.writeHead(404).end();
      return;
    }
    read().then(
      (text) => response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4' }).end(text),
      () => response.writeHead(500).end(),
    );
  };
  const { host, port } = metrics;
  const tls = tlsAt(given, host);
  const server = tls
    ? https.createServer({ ...tls, ...tlsLimits }, answer)
    : http.createServer(answer);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, host, resolve);
  });
  const address = server.address();
  const actualPort = typeof address === 'object' && address ? address.port : port;
  return {
    url: `${tls ? 'https' : 'http'}://${host}:${actualPort}/metrics`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
