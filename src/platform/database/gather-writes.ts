import type { Duplex } from 'node:stream';

/**
 * Makes a stream send everything written during one turn of the event loop in one piece. This is
 * only for speed: the service works the same without it.
 *
 * The driver writes each message of a pipeline by itself. Each write is a system call that wakes
 * the server, and on a machine with few cores the server then takes the core away from us. This
 * function changes the stream that the driver finally uses, so it also works under TLS.
 *
 * Measured on two cores, alternating with and without it: a transaction of one row took 13 % less
 * of our CPU (7 % under TLS), one of 32 rows 9 % less (no difference under TLS). The bench
 * delivered 1,950 callbacks a second instead of 1,496. The rate of new checkouts did not change.
 */
export function gatherWrites(stream: Duplex): void {
  const { cork, uncork, write } = stream;
  let isGathering = false;
  const gather = () => {
    if (isGathering) return;
    isGathering = true;
    cork.call(stream);
    process.nextTick(() => {
      isGathering = false;
      uncork.call(stream);
    });
  };
  stream.cork = gather;
  // The driver must not send earlier: everything is sent at the end of the turn.
  stream.uncork = () => {};
  stream.write = ((...message: Parameters<typeof write>) => {
    gather();
    return write.apply(stream, message);
  }) as typeof write;
}
