import net from 'node:net';

// A program that listens on `localhost` listens on all its addresses. Linux has 127.0.0.2 by
// default; other systems do not.

const hasSecond = await new Promise<boolean>((resolve) => {
  const server = net.createServer().once('error', () => resolve(false));
  server.listen(0, '127.0.0.2', () => server.close(() => resolve(true)));
});

const twoAddresses = new URL('./two-addresses.ts', import.meta.url).href;

/** The addresses of `localhost` in a program with `loopbackSettings`. */
export const loopbackAddresses = hasSecond ? ['127.0.0.1', '127.0.0.2'] : ['127.0.0.1'];
export const loopbackSettings: NodeJS.ProcessEnv = hasSecond
  ? { NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import=${twoAddresses}` }
  : {};
