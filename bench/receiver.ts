import http from 'node:http';
import type { AddressInfo } from 'node:net';

// Receivers that answer 200 at once, in a separate process. Each has its own port, so it counts as
// a destination. The process sends the ports to its parent and ends with it.

const count = Number(process.argv[2]);
const ports = await Promise.all(
  Array.from({ length: count }, async () => {
    const server = http.createServer((request, response) => {
      request.resume().on('end', () => response.writeHead(200).end());
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return (server.address() as AddressInfo).port;
  }),
);
process.send?.(ports);
process.on('disconnect', () => process.exit());
