import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

export type Metrics = {
  registry: Registry;
  observeRequest(method: string, route: string, status: number, milliseconds: number): void;
};

export function createMetrics(
  listTableBytes: () => Promise<{ table: string; bytes: number }[]>,
): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const requests = new Histogram({
    name: 'tranche_http_request_seconds',
    help: 'Time to answer a request, by method, route and status.',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers: [registry],
  });
  new Gauge({
    name: 'tranche_table_bytes',
    help: 'Size of a table with its indexes.',
    labelNames: ['table'],
    registers: [registry],
    // Every process sees the same database.
    aggregator: 'max',
    async collect() {
      this.reset();
      // Without a database the other metrics matter most.
      const tables = await listTableBytes().catch(() => []);
      for (const { table, bytes } of tables) this.set({ table }, bytes);
    },
  });
  return {
    registry,
    observeRequest(method, route, status, milliseconds) {
      requests.observe({ method, route, status: String(status) }, milliseconds / 1000);
    },
  };
}
