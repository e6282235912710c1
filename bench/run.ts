import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { benchCallbacks, benchClaims } from './callbacks.ts';
import { benchCitus } from './citus.ts';
import { benchCollect } from './collect.ts';
import { type Figure, keepFigures, listWorse } from './compare.ts';
import { benchConsole } from './console.ts';
import { benchCreate } from './create.ts';
import { benchGateways } from './gateways.ts';
import { benchLedger } from './ledger.ts';
import { benchLists } from './lists.ts';
import { benchMessageClaims, benchMessages } from './messages.ts';
import { benchPayments } from './payments.ts';
import { benchPayouts } from './payouts.ts';
import { benchPressure } from './pressure.ts';
import { benchReconcile } from './reconcile.ts';
import { benchSale } from './sale.ts';
import { benchScale } from './scale.ts';
import { type Cost, sumOf } from './shop.ts';
import { benchSoak } from './soak.ts';
import { benchCommand, benchStart } from './start.ts';

// npm run bench                everything, about half an hour
// npm run bench -- create      one part: create, lists, console, callbacks, messages, ledger,
//                              payouts, collect, gateways, reconcile, sale, sale-later (after
//                              3,000 sales), payments, pressure, start
// npm run bench -- soak        sells for an hour; --minutes=5 for less. Only if it is asked for
// npm run bench -- scale       sells beside 1,000,000 checkouts with all that belongs to them,
//                              which need 16 GB of disk; --checkouts=100000 for fewer, --unpaid=6
//                              for six that stay unpaid for each that is sold, --data=FOLDER to
//                              keep them for the next time (console too). Only if it is asked for
// npm run bench -- citus --plain=URL --citus=URL
//                              sells on a PostgreSQL server and on a Citus cluster in turns, all of
//                              whose servers run on this machine. Only if it is asked for
// npm run bench -- --quick     shorter rounds, fewer rows
// npm run bench -- --keep      keeps the ratios for the next comparison; part of a release
//
// Machines are shared and noisy, so only ratios count: two things measured in turns in one run,
// never an absolute time.

const args = process.argv.slice(2);
const quick = args.includes('--quick');
const parts = args.filter((arg) => !arg.startsWith('-'));
const given = (name: string) =>
  args.find((arg) => arg.startsWith(`--${name}=`))?.slice(name.length + 3);
const kept = given('data');
const wanted = (part: string) => parts.length === 0 || parts.includes(part);

type Row = { what: string; measured: string; goal: string; met: boolean };
const rows: Row[] = [];
const row = (what: string, measured: string, goal: string, met: boolean) => {
  rows.push({ what, measured, goal, met });
};
const ratio = (value: number) => `${value.toFixed(2)} ×`;

/** The ratios that are compared with the last release. */
const figures = new Map<string, Figure>();
const compare = (name: string, value: number, better: Figure['better']) => {
  figures.set(name, { value, better });
  return value;
};

const shows = process.stderr.isTTY && !process.env.CI;
const progress = (text: string) => {
  process.stderr.write(shows ? `\r\x1b[K${text}` : `${text}\n`);
};

if (wanted('create')) {
  for (const processes of [1, 2]) {
    const options = { seconds: quick ? 3 : 6, rounds: quick ? 1 : 3, processes };
    const result = await benchCreate(options, progress);
    const what = `create, ${processes} process${processes > 1 ? 'es' : ''}`;
    const speed = result.service / result.bare;
    const counts = `${Math.round(result.service)}/s of ${Math.round(result.bare)}/s by ${result.bareTool}`;
    // The goal applies to one process per core; the figure for a single process is for information.
    row(
      what,
      `${ratio(speed)}  ${counts}`,
      processes > 1 ? '≥ 0.90 ×' : '',
      speed >= 0.9 || processes === 1,
    );
    // A busy disk lengthens both tails, so ours is compared with that of the bare inserts.
    const own = ratio(result.p99 / result.p50);
    row(
      `${what}, p99 to p50 against ${result.bareTool}'s`,
      `${ratio(result.tail)}  ${own} of ${ratio(result.bareTail)}`,
      '≤ 1.50 ×',
      result.tail <= 1.5,
    );
    const { toStripeMock } = result;
    if (toStripeMock !== null) {
      const goal = processes > 1 ? '≥ 1.20 ×' : '';
      const met = processes === 1 || toStripeMock >= 1.2;
      row(`${what}, to stripe-mock's payment intents`, ratio(toStripeMock), goal, met);
    }
    // Other programs on the machine change the rates more than the processor time.
    const { service, database, bare } = result.cost;
    const times = compare(`creates, ${processes}`, (service + database) / bare, 'less');
    const micro = (value: number) => `${Math.round(value)} µs`;
    const costs = `${micro(service)} + ${micro(database)}`;
    row(`${what}, processor time`, costs, '≤ 180 µs + …', service <= 180);
    row(`${what}, processor time to a bare insert's`, ratio(times), '', true);
    row(`${what}, memory`, `${Math.round(result.memory)} MB`, '< 250 MB', result.memory < 250);
    row(`${what}, failures`, String(result.failures), '0', result.failures === 0);
  }
}
if (wanted('lists')) {
  const many = quick ? 200_000 : 2_000_000;
  const options = { few: 1000, many, seconds: quick ? 1 : 2, rounds: quick ? 3 : 5 };
  for (const { what, few, many: large } of await benchLists(options, progress)) {
    const growth = large / few;
    row(`${what}, ${many} to 1000 rows`, ratio(growth), '≤ 1.30 ×', growth <= 1.3);
  }
}
if (wanted('console')) {
  const many = quick ? 20_000 : 2_000_000;
  const options = { few: 1_000, many, rounds: quick ? 10 : 20, ...(kept && { data: kept }) };
  for (const { what, few, many: large } of await benchConsole(options, progress)) {
    const growth = large / few;
    row(`console: ${what}, ${many} to 1000 rows`, ratio(growth), '≤ 1.30 ×', growth <= 1.3);
  }
}
if (wanted('ledger')) {
  const checkouts = quick ? 50_000 : 1_000_000;
  const { seconds, bareSeconds, memory, isFound } = await benchLedger({ checkouts }, progress);
  const each = (1_000_000 * seconds.many) / checkouts;
  row(
    `ledger check, ${checkouts} checkouts`,
    `${seconds.many.toFixed(1)} s  ${each.toFixed(0)} µs each`,
    '≤ 60 µs each',
    each <= 60,
  );
  const reading = seconds.many / bareSeconds;
  row('ledger check, against reading the rows once', ratio(reading), '', true);
  const growth = seconds.many / seconds.few / 20;
  row('ledger check, time per checkout at 20 × the rows', ratio(growth), '≤ 1.30 ×', growth <= 1.3);
  const more = memory.many - memory.few;
  const megabytes = `${memory.many.toFixed(0)} MB, ${more.toFixed(0)} MB more`;
  row('ledger check, memory for twenty times as many', megabytes, '< 20 MB more', more < 20);
  row('ledger check, one cent moved', isFound ? 'found' : 'not found', 'found', isFound);
}
if (wanted('collect')) {
  const options = { payments: quick ? 3_000 : 100_000, rounds: quick ? 3 : 10 };
  const { bare, service, ratio: speed, memory } = await benchCollect(options, progress);
  compare('collect', speed, 'more');
  const counts = `${Math.round(service)}/s of ${Math.round(bare)}/s by the bare adapter`;
  row(
    `collect, ${options.payments} payments`,
    `${ratio(speed)}  ${counts}`,
    '≥ 0.50 ×',
    speed >= 0.5,
  );
  const more = memory.last - memory.first;
  const megabytes = `${memory.last.toFixed(0)} MB, ${more.toFixed(0)} MB more`;
  row('collect, memory after the last round', megabytes, '< 30 MB more', more < 30);
}
if (wanted('gateways')) {
  const options = { payments: quick ? 300 : 1_000, rounds: quick ? 5 : 9 };
  const { milliseconds, ...costs } = await benchGateways(options, progress);
  for (const what of ['create', 'charge'] as const) {
    const [one, other] = Object.values(milliseconds).map((cost) => cost[what].toFixed(2));
    row(
      `gateways: ${what} through the second adapter to the first`,
      `${ratio(compare(`gateways, ${what}`, costs[what], 'less'))}  ${other} ms to ${one} ms`,
      '≤ 1.15 ×',
      costs[what] <= 1.15,
    );
  }
}
if (wanted('payouts')) {
  const sales = quick ? 10_000 : 100_000;
  const { few, many } = await benchPayouts({ sales, rounds: quick ? 2 : 5 }, progress);
  const each = `${((1_000_000 * many) / sales).toFixed(0)} µs each`;
  row(`payouts, closing ${sales} sales`, `${many.toFixed(2)} s  ${each}`, '', true);
  const growth = many / few / 10;
  row('payouts, time per sale at 10 × the sales', ratio(growth), '≤ 1.30 ×', growth <= 1.3);
}
if (wanted('reconcile')) {
  const options = { records: quick ? 20_000 : 100_000, rounds: quick ? 3 : 5 };
  const { bare, service, ratio: speed, memory } = await benchReconcile(options, progress);
  compare('reconcile', speed, 'more');
  const counts = `${Math.round(service)}/s of ${Math.round(bare)}/s by a bare walk`;
  const what = `reconcile, ${options.records} records`;
  row(what, `${ratio(speed)}  ${counts}`, '≥ 0.80 ×', speed >= 0.8);
  const more = memory.late - memory.early;
  const megabytes = `${memory.late.toFixed(0)} MB, ${more.toFixed(0)} MB more`;
  row('reconcile, memory at the end of a walk', megabytes, '< 30 MB more', more < 30);
}
if (wanted('callbacks')) {
  const count = quick ? 4_000 : 8_000;
  const result = await benchCallbacks({ count, rounds: quick ? 3 : 9 }, progress);
  const speed = result.ratio;
  compare('callbacks', (result.cpu + result.databaseCpu) / result.bareCpu, 'less');
  const counts = `${Math.round(result.delivered)}/s of ${Math.round(result.bare)}/s bare`;
  row('callbacks delivered', `${ratio(speed)}  ${counts}`, '≥ 0.80 ×', speed >= 0.8);
  const seconds = (value: number) => `${value.toFixed(2)} s`;
  const cpu = `${seconds(result.cpu)} and ${seconds(result.databaseCpu)} of the database`;
  row('callbacks, CPU for 1000', `${cpu}, ${seconds(result.bareCpu)} bare`, '', true);
  row('callbacks, not delivered', String(result.failures), '0', result.failures === 0);
  const delivered = quick ? 100_000 : 1_000_000;
  const claims = await benchClaims({ delivered, rounds: quick ? 50 : 200 }, progress);
  const growth = claims.many / claims.few;
  row(`callbacks, claim beside ${delivered} delivered`, ratio(growth), '≤ 1.30 ×', growth <= 1.3);
}
if (wanted('messages')) {
  const result = await benchMessages(
    { count: quick ? 1_000 : 4_000, rounds: quick ? 3 : 9 },
    progress,
  );
  compare('messages', result.ratio, 'more');
  const counts = `${Math.round(result.sent)}/s of ${Math.round(result.bare)}/s bare`;
  row('messages sent', `${ratio(result.ratio)}  ${counts}`, '≥ 0.80 ×', result.ratio >= 0.8);
  row('messages, not sent', String(result.failures), '0', result.failures === 0);
  const sent = quick ? 100_000 : 1_000_000;
  const claims = await benchMessageClaims({ sent, rounds: quick ? 50 : 200 }, progress);
  const growth = claims.many / claims.few;
  row(`messages, claim beside ${sent} sent`, ratio(growth), '≤ 1.30 ×', growth <= 1.3);
}
for (const part of ['sale', 'sale-later']) {
  if (!wanted(part)) continue;
  const isLater = part === 'sale-later';
  const sales = quick ? 100 : 300;
  const options = { warmUp: isLater ? 3_000 : 60, sales, idleSeconds: quick ? 5 : 20 };
  const { idle, sale, after } = await benchSale(options, progress);
  for (const [step, { service, database }] of Object.entries({ ...sale, ...after })) {
    row(`${part}: ${step}`, `${service.toFixed(2)} ms + ${database.toFixed(2)} ms`, '', true);
  }
  const whole = Object.values(sale).reduce((total, step) => total + sumOf(step), 0);
  const creates = compare(`${part} to create`, whole / sumOf(sale.create), 'less');
  const createsMax = isLater ? 20 : 10;
  row(
    `${part}: whole sale to one create`,
    `${ratio(creates)}  ${whole.toFixed(1)} ms`,
    `≤ ${createsMax} ×`,
    creates <= createsMax,
  );
  const payment = sumOf(sale.pay);
  const collected = compare(
    `${part}, collection to payment`,
    sumOf(after.collection) / payment,
    'less',
  );
  row(`${part}: collection to payment`, ratio(collected), '≤ 0.40 ×', collected <= 0.4);
  const refunded = compare(`${part}, refund to payment`, sumOf(after.refund) / payment, 'less');
  row(`${part}: refund to payment`, ratio(refunded), '≤ 0.60 ×', refunded <= 0.6);
  row(`${part}: idle, transactions a second`, idle.toFixed(1), '≤ 3', idle <= 3);
}
if (wanted('payments')) {
  const options = { payments: quick ? 304 : 1_000, rounds: quick ? 3 : 5 };
  const result = await benchPayments(options, progress);
  if (result === null) row('payments', 'pgbench is not installed', '', true);
  else {
    const speed = compare('payments', result.ratio, 'more');
    const counts = `${Math.round(result.paid)}/s of ${Math.round(result.bare)}/s by pgbench`;
    row('payments', `${ratio(speed)}  ${counts}`, '≥ 0.50 ×', speed >= 0.5);
    row(
      'payments, without the time of gateway, shop and shoppers',
      ratio(result.ratioAlone),
      '',
      true,
    );
  }
}
if (wanted('pressure')) {
  const result = await benchPressure({ seconds: quick ? 5 : 20 }, progress);
  const { maximal, p50, p99, paid, refused, wrong, unknown } = result;
  const tail = p99 / p50;
  const times = `${p50.toFixed(0)} and ${p99.toFixed(0)} ms at half of ${maximal.toFixed(0)}/s`;
  row('pressure: p99 to p50 of payments', `${ratio(tail)}  ${times}`, '≤ 5 ×', tail <= 5);
  row('pressure: three times the rate', `${paid} paid, ${refused} refused`, '', true);
  row('pressure: other answers', String(wrong), '0', wrong === 0);
  row('pressure: unknown outcomes', String(unknown), '0', unknown === 0);
}
if (parts.includes('soak')) {
  const { sales, refused, early, late } = await benchSoak(
    { minutes: Number(given('minutes') ?? 60) },
    progress,
  );
  const flat = (what: keyof typeof early, max: number) => {
    const growth = late[what] / early[what];
    const from = `${early[what].toFixed(0)} to ${late[what].toFixed(0)}, ${sales} sales`;
    row(`soak: ${what}`, `${ratio(growth)}  ${from}`, `≤ ${max.toFixed(2)} ×`, growth <= max);
  };
  flat('memory', 1.1);
  flat('handles', 1.1);
  flat('connections', 1.1);
  row('soak: refused because of load', String(refused), '', true);
}
if (parts.includes('scale')) {
  const data = kept ?? mkdtempSync(join(tmpdir(), 'tranche-bench-scale-'));
  const counts = {
    checkouts: Number(given('checkouts') ?? 1_000_000),
    unpaid: Number(given('unpaid') ?? 0),
  };
  const options = { ...counts, sales: quick ? 50 : 100, rounds: quick ? 1 : 3, data };
  const { steps, audit, sizes } = await benchScale(options, progress);
  for (const { table, rows: count, heap, indexes } of sizes) {
    const bytes = `${Math.round(heap)} + ${Math.round(indexes)} bytes in ${count.toFixed(2)} rows`;
    row(`scale: ${table}, for each checkout`, bytes, '', true);
  }
  const all = sizes.reduce((sum, { heap, indexes }) => sum + heap + indexes, 0);
  row('scale: all tables, for each checkout', `${Math.round(all)} bytes`, '', true);
  for (const { step, few, many } of steps) {
    const growth = many / few;
    const what = `scale: ${step} beside ${options.checkouts} checkouts`;
    const times = `${few.toFixed(2)} ms to ${many.toFixed(2)} ms`;
    row(what, `${ratio(growth)}  ${times}`, '≤ 1.20 ×', growth <= 1.2);
  }
  row('scale: a step of the continuous check', `${audit.toFixed(2)} ms`, '', true);
  const night = { payments: quick ? 2_000 : 20_000, rounds: 4 };
  const { cost } = await benchCollect({ ...night, data }, progress);
  const { cost: before } = await benchCollect(night, progress);
  const hours = (200_000 * cost) / 1_000 / 3_600;
  row(
    `scale: a night of 200,000 collections, by the cost of ${night.payments}`,
    `${hours.toFixed(2)} hours of a core  ${before.toFixed(2)} ms to ${cost.toFixed(2)} ms each`,
    '≤ 2 hours',
    hours <= 2,
  );
  if (kept === undefined) rmSync(data, { recursive: true, force: true });
}
if (parts.includes('citus')) {
  const [plain, citus] = [given('plain'), given('citus')];
  if (!plain || !citus) throw new Error('--plain=URL and --citus=URL are needed');
  const counts = quick
    ? { creates: 1_000, sales: 48, deliveries: 480, rounds: 1 }
    : { creates: 2_000, sales: 72, deliveries: 1_200, rounds: 3 };
  const { steps, rows: held } = await benchCitus({ plain, citus, ...counts }, progress);
  const show = ({ service, database, workers }: Cost) =>
    [service, database, workers].map((value) => value.toFixed(2)).join(' + ');
  for (const { step, plain: one, citus: many } of steps) {
    const times = `${show(one)} ms to ${show(many)} ms`;
    row(`citus: ${step}`, `${ratio(sumOf(many) / sumOf(one))}  ${times}`, '', true);
  }
  row('citus: postings of each worker', held.join(', '), '', true);
}
if (wanted('start')) {
  const seconds = await benchStart({ rounds: quick ? 1 : 5 }, progress);
  row('npm start until ready', `${seconds.toFixed(2)} s`, '≤ 2.2 s', seconds <= 2.2);
  const { command, bare } = benchCommand({ rounds: quick ? 5 : 15 });
  const nodes = compare('command to bare node', command / bare, 'less');
  row(
    'tranche --help, processor time',
    `${command.toFixed(2)} s  ${ratio(nodes)} bare node`,
    '≤ 0.3 s',
    command <= 0.3,
  );
}
if (shows) process.stderr.write('\r\x1b[K');

const width = (column: 'what' | 'measured' | 'goal') =>
  Math.max(...rows.map((one) => one[column].length));
for (const { what, measured, goal, met } of rows) {
  const cells = [
    what.padEnd(width('what')),
    measured.padEnd(width('measured')),
    goal.padEnd(width('goal')),
  ];
  process.stdout.write(`${cells.join('  ')}  ${goal === '' ? '' : met ? 'met' : 'missed'}\n`);
}
for (const worse of listWorse(figures)) process.stdout.write(`worse by more than 10 %: ${worse}\n`);
if (args.includes('--keep')) keepFigures(figures);
process.exitCode = rows.every((one) => one.met) ? 0 : 1;
