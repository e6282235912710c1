import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import nodemailer from 'nodemailer';
import { claimDue, newLease } from '#platform/database/due-work.sql.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { dueMessages } from '#purchases/messages/message.sql.ts';
import type { Mail, MailTransport } from '#purchases/messages/sending/mail.ts';
import { sendDueMessages } from '#purchases/messages/sending/send-messages.ts';
import { smtpTransport } from '#purchases/messages/sending/smtp-transport.ts';
import { median } from './create.ts';
import { type Account, createAccount, startDatabase } from './service.ts';

const connections = 5;

export type MessagesResult = {
  /** The outbox's messages per second divided by those of a bare loop, both from the same round. */
  ratio: number;
  bare: number;
  sent: number;
  failures: number;
};

/**
 * Sends due messages through a real SMTP server. It alternates with a bare loop on the same
 * library, which sends the outbox's last message again, over as many connections.
 */
export async function benchMessages(
  options: { count: number; rounds: number },
  progress: (text: string) => void,
): Promise<MessagesResult> {
  const server = await startMailServer();
  const { deps, stop } = await startDatabase(12);
  const url = `smtp://127.0.0.1:${server.port}`;
  const smtp = smtpTransport({ url, from: 'pay@example.com' });
  let last: Mail | undefined;
  const mail: MailTransport = {
    ...smtp,
    send: (one) => {
      last = one;
      return smtp.send(one);
    },
  };
  try {
    const account = await createAccount(deps);
    const bare: number[] = [];
    const sent: number[] = [];
    // Round 0 warms up.
    for (let round = 0; round <= options.rounds; round += 1) {
      await queue(deps, account, options.count, round);
      progress(`messages: round ${round} of ${options.rounds}, outbox`);
      const start = performance.now();
      while ((await sendDueMessages({ ...deps, mail })) > 0);
      const perSecond = options.count / ((performance.now() - start) / 1000);
      progress(`messages: round ${round} of ${options.rounds}, bare loop`);
      if (!last) throw new Error('the outbox sent nothing');
      const barePerSecond = await sendBare(url, last, options.count);
      if (round === 0) continue;
      bare.push(barePerSecond);
      sent.push(perSecond);
    }
    const { rows } = await deps.database.pool.query(
      "select count(*)::int as count from messages where status <> 'sent'",
    );
    return {
      ratio: median(sent.map((perSecond, round) => perSecond / (bare[round] ?? 0))),
      bare: median(bare),
      sent: median(sent),
      failures: rows[0].count,
    };
  } finally {
    await mail.close();
    await stop();
    server.stop();
  }
}

/** The time to claim a batch, alternately with no sent messages and with many. */
export async function benchMessageClaims(
  options: { sent: number; rounds: number },
  progress: (text: string) => void,
): Promise<{ few: number; many: number }> {
  const databases = [await startDatabase(), await startDatabase()];
  try {
    const sides = await Promise.all(
      databases.map(async ({ deps }) => ({
        deps,
        account: await createAccount(deps),
        times: [] as number[],
      })),
    );
    for (const [index, { deps, account }] of sides.entries()) {
      progress(`messages: ${index === 0 ? 0 : options.sent} that were sent`);
      if (index > 0) await queue(deps, account, options.sent, 0, 'sent');
      await queue(deps, account, options.rounds * 50 + 500, 1);
      await deps.database.pool.query('vacuum analyze messages');
    }
    // The first five rounds warm up.
    for (let round = -5; round < options.rounds; round += 1) {
      for (const { deps, account, times } of sides) {
        const merchantNow = timestamp(deps.clock.now());
        const claim = { ...newLease(deps, 300), merchantNow };
        const { id } = account.merchant;
        const start = performance.now();
        const claimed = await claimDue(deps.database.db, dueMessages, id, claim, 50);
        if (round >= 0) times.push(performance.now() - start);
        if (claimed.length !== 50) throw new Error('there was not enough to claim');
      }
    }
    const [few = 0, many = 0] = sides.map(({ times }) => median(times));
    return { few, many };
  } finally {
    for (const { stop } of databases) await stop();
  }
}

async function sendBare(
  url: string,
  { to, subject, text, html }: Mail,
  count: number,
): Promise<number> {
  const pool = nodemailer.createTransport({
    url,
    pool: true,
    maxConnections: connections,
    maxMessages: Number.POSITIVE_INFINITY,
  });
  const start = performance.now();
  let left = count;
  const sendNext = async () => {
    while (left-- > 0) {
      await pool.sendMail({ from: 'pay@example.com', to, subject, text, html });
    }
  };
  await Promise.all(Array.from({ length: connections }, sendNext));
  pool.close();
  return count / ((performance.now() - start) / 1000);
}

/** Inserts paid checkouts with one message each, in plain SQL because there are many. */
async function queue(
  deps: Awaited<ReturnType<typeof startDatabase>>['deps'],
  { merchant, id: integration_id }: Account,
  count: number,
  round: number,
  status: 'pending' | 'sent' = 'pending',
): Promise<void> {
  const now = timestamp(deps.clock.now());
  const { pool } = deps.database;
  // A thousand plans are enough: each message reads only its own plan.
  const plans = Math.min(count, 1_000);
  await pool.query(
    `insert into checkouts (merchant_id, id, number, integration_id, status, amount, currency,
       client_reference_id, notify_url, success_url, cancel_url, customer, line_items, terms,
       number_of_payments, signed, created_at, expires_at, completed_at)
     select $1::uuid, md5($1::uuid::text || $5::text || n)::uuid, $6::bigint + n, $2, 'successful', 150000, 'ZAR',
       'order-' || n, 'https://shop.example/c', 'https://shop.example/p', 'https://shop.example/x',
       '{"email": "thandi@example.com"}', '[]', '{3}', 3, true, $3::timestamptz, $3::timestamptz, $3::timestamptz
     from generate_series(1, $4::int) n`,
    [merchant.id, integration_id, now, plans, String(round), round * 1_000_000],
  );
  await pool.query(
    `insert into instalments (merchant_id, checkout_id, number, amount, currency, due_on, status,
       payment_ref, collected_at, due_at)
     select $1::uuid, md5($1::uuid::text || $4::text || n)::uuid, k, 50000, 'ZAR', ($2::timestamptz)::date + 30 * k,
       case when k = 1 then 'collected' else 'scheduled' end,
       case when k = 1 then 'pi_' || n end, case when k = 1 then $2::timestamptz end,
       case when k > 1 then $2::timestamptz + interval '30 days' end
     from generate_series(1, $3::int) n, generate_series(1, 3) k`,
    [merchant.id, now, plans, String(round)],
  );
  // The rows are written in parts, because a statement that writes a million rows would be
  // cancelled.
  const part = 50_000;
  for (let first = 1; first <= count; first += part) {
    const last = Math.min(count, first + part - 1);
    await pool.query(
      `insert into messages (merchant_id, id, checkout_id, kind, about, facts, status, created_at,
         planned_at, due_at, settled_at)
       select $1::uuid, gen_random_uuid(), md5($1::uuid::text || $5::text || (1 + n % $6::int))::uuid,
         'charged', 'n ' || n, '{"instalment": 1, "amount": 50000}', $7::text, $2::timestamptz,
         $2::timestamptz, case when $7::text = 'pending' then $2::timestamptz end,
         case when $7::text = 'sent' then $2::timestamptz end
       from generate_series($3::int, $4::int) n`,
      [merchant.id, now, first, last, String(round), plans, status],
    );
  }
}

async function startMailServer(): Promise<{ port: number; stop(): void }> {
  const file = fileURLToPath(new URL('mail-server.ts', import.meta.url));
  const child: ChildProcess = fork(file);
  const port = await new Promise<number>((resolve) => {
    child.once('message', (message) => resolve(Number(message)));
  });
  return { port, stop: () => child.kill() };
}
