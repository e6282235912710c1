import { SMTPServer, type SMTPServerOptions } from 'smtp-server';

export type ReceivedMail = { from: string; to: string[]; source: string; secure: boolean };

export type MailServer = {
  url: string;
  mails: ReceivedMail[];
  /** How many connections have been opened so far. */
  connections(): number;
  stop(): Promise<void>;
};

/** Starts a real SMTP server on loopback, which stores what it gets. */
export async function startMailServer(
  options: SMTPServerOptions & { user?: string; password?: string } = {},
): Promise<MailServer> {
  const mails: ReceivedMail[] = [];
  let connections = 0;
  const { user, password, ...given } = options;
  const server = new SMTPServer({
    logger: false,
    authOptional: user === undefined,
    disabledCommands: user === undefined ? ['AUTH', 'STARTTLS'] : [],
    onConnect(_session, done) {
      connections += 1;
      done();
    },
    onAuth(auth, _session, done) {
      if (auth.username === user && auth.password === password) return done(null, { user });
      done(new Error('Invalid username or password'));
    },
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        mails.push({
          from: session.envelope.mailFrom ? session.envelope.mailFrom.address : '',
          to: session.envelope.rcptTo.map(({ address }) => address),
          source: Buffer.concat(chunks).toString('utf8'),
          secure: session.secure,
        });
        done();
      });
    },
    ...given,
  });
  server.on('error', () => {});
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve());
  });
  const address = server.server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const login = user === undefined ? '' : `${user}:${password}@`;
  return {
    url: `smtp://${login}127.0.0.1:${port}`,
    mails,
    connections: () => connections,
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/** The header's value, unfolded. */
export function headerOf({ source }: ReceivedMail, name: string): string | undefined {
  const [head = ''] = source.split('\r\n\r\n');
  const unfolded = head.replace(/\r\n[ \t]+/g, ' ');
  return new RegExp(`^${name}: (.*)$`, 'im').exec(unfolded)?.[1];
}
