import type { Server } from 'node:http';

/** Counts the requests in flight. An idle connection does not count. */
export function watchFlights(servers: Server[]): {
  count(): number;
  settled(): Promise<void>;
} {
  let count = 0;
  let waiting: (() => void)[] = [];
  for (const server of servers) {
    server.on('request', (_request, response) => {
      count += 1;
      response.once('close', () => {
        count -= 1;
        if (count > 0) return;
        for (const resolve of waiting) resolve();
        waiting = [];
      });
    });
  }
  return {
    count: () => count,
    async settled() {
      if (count > 0) await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
}
