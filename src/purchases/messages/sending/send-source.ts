import { Readable } from 'node:stream';
import type { createTransport } from 'nodemailer';

type Pool = ReturnType<typeof createTransport>;

/**
 * Sends a mail whose source is composed, over a connection of the library's pool. This is only for
 * speed: the library's `sendMail` would make a message of the source and pipe it through more
 * streams. The outbox sends 94 % as many mails a second as a bare loop over `sendMail`. When it
 * called `sendMail` itself, it sent 73 %.
 */
export function sendSource(
  { transporter }: Pool,
  { from, to, messageId, source }: { from: string; to: string; messageId: string; source: Buffer },
): Promise<{ response: string }> {
  // The pool changes the message that it gets, and may read it again for another connection. So
  // every mail gets its own message object, which opens a new stream each time it is read.
  const message = {
    getEnvelope: () => ({ from, to: [to] }),
    getHeader: () => messageId,
    messageId: () => messageId,
    createReadStream: () =>
      new Readable({
        read() {
          this.push(source);
          this.push(null);
        },
      }),
  };
  return new Promise((resolve, reject) => {
    transporter.send({ data: {}, message } as never, (error, sent) =>
      error ? reject(error) : resolve(sent as { response: string }),
    );
  });
}
