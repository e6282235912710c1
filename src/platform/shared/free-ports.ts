import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import net from 'node:net';

/**
 * Free ports of this machine, all different. Other programs could take the ports before we do,
 * which is unlikely: the ports are below the range from which systems take ports for outgoing
 * connections. In that range, a client that connects while its server is down can connect to
 * itself.
 */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  for (let attempt = 1; ports.size < count; attempt += 1) {
    if (attempt > 100 * count)
      throw new Error('This machine has no free port from 20000 to 31999.');
    const port = randomInt(20_000, 32_000);
    if (await isPortFree(port)) ports.add(port);
  }
  return [...ports];
}

export async function isPortFree(port: number): Promise<boolean> {
  const probe = net.createServer();
  try {
    probe.listen({ port, host: '127.0.0.1', exclusive: true });
    await once(probe, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    probe.close();
  }
}
