import http from 'node:http';
import https from 'node:https';
import type { Config } from '#config.ts';

/** Metrics are only for the operator, so they have their own port, on loopback by default. */
export async function serveMetrics(
  { metrics, tls }: Pick<Config, 'metrics' | 'tls'>,
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
  const server = tls ? https.createServer(tls, answer) : http.createServer(answer);
  const { host, port } = metrics;
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
