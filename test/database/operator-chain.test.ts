import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { sql } from 'kysely';
import type { OperatorRole } from '#operating/people/permission.ts';
import { FreeText } from '#record/actions/free-text.ts';
import { type Origin, operate, SessionEnded } from '#record/actions/operate.ts';
import { listOperatorActions } from '#record/actions/operator-action.sql.ts';
import { verifyOperatorChain } from '#record/actions/verify-operator-chain.ts';
import { commandLine } from '../support/cli.ts';
import { addPerson } from '../support/console.ts';
import { type Service, startService } from '../support/service.ts';
import { tamper } from '../support/tamper.ts';

// Each test begins with a chain of five actions, the second from the console and the fourth from
// the command line.

let service: Service;
before(async () => {
  service = await startService();
  const roles: OperatorRole[] = ['refunds', 'support'];
  const { id: person_id, session_id } = await addPerson(service, { roles });
  const access_id = person_id;
  origins[2] = { person_id, access_id, session_id, roles, address: '192.0.2.7', counts_from: null };
});
after(() => service.close());

const origins: Record<number, Origin> = { 4: { os_user: 'root', host: 'pay-1' } };
const record = (note: string, origin?: Origin) =>
  operate({ ...service.deps, ...(origin && { origin }) }, 'nomsa', 'test action', async () => ({
    subject_id: service.deps.random.uuid(),
    details: {
      note,
      amounts: [1, 2.5],
      nested: { b: 1, a: null, reason: new FreeText(`${note}: Thandi phoned`) },
      why: new FreeText(note),
    },
    result: null,
  }));
const change = (text: string) => tamper(service.deps.database.pool, text);
const verify = (anchor?: { number: number; hash: string }) =>
  verifyOperatorChain(service.deps, anchor ? [anchor] : []);
const kinds = async () => (await verify()).differences.map(({ kind, number }) => [kind, number]);

beforeEach(async () => {
  await change(`
    delete from action_texts;
    delete from operator_actions;
    update operator_chain set number = 0, hash = sha256('')`);
  for (let count = 1; count <= 5; count += 1) {
    await record(`action ${count}`, origins[count]);
  }
  assert.deepEqual(await kinds(), []);
});

describe('tampering with operators’ actions is found', () => {
  for (const [name, statement, expected] of [
    ['a changed operator', "set operator = 'thabo' where number = 3", [['changed', 3]]],
    ['a changed time', "set at = at - interval '1 ms' where number = 3", [['changed', 3]]],
    ['a changed detail', `set details = '{"note": "?"}' where number = 5`, [['changed', 5]]],
    ['a changed subject', 'set subject_id = null where number = 1', [['changed', 1]]],
    ['a changed person', 'set person_id = gen_random_uuid() where number = 2', [['changed', 2]]],
    ['a person taken away', 'set person_id = null where number = 2', [['changed', 2]]],
    ['changed roles', `set roles = '{refunds}' where number = 2`, [['changed', 2]]],
    ['a changed address', `set address = '192.0.2.8' where number = 2`, [['changed', 2]]],
    ['a changed session', 'set session_id = gen_random_uuid() where number = 2', [['changed', 2]]],
    ['a changed system user', `set os_user = 'thabo' where number = 4`, [['changed', 4]]],
    [
      'a person put in place of a system user',
      `set (os_user, host) = (null, null), person_id = gen_random_uuid() where number = 4`,
      [['changed', 4]],
    ],
    [
      'an action with a new hash of its own',
      `set operator = 'thabo', hash = sha256('x') where number = 3`,
      [
        ['changed', 3],
        ['changed', 4],
      ],
    ],
  ] as const) {
    test(name, async () => {
      await change(`update operator_actions ${statement}`);
      assert.deepEqual(await kinds(), expected);
    });
  }

  for (const [name, statement] of [
    ['a changed text', "update action_texts set text = 'no' where field = 'why'"],
    ['a changed salt', "update action_texts set salt = 'no' where field = 'why'"],
    ['a text that is gone without being erased', "delete from action_texts where field = 'why'"],
    [
      'a text that was erased and given another digest',
      `update action_texts set text = null, salt = null, erased_at = '2026-01-02',
         digest = sha256('no') where field = 'why'`,
    ],
    [
      'a text that was slipped in',
      `insert into action_texts (action_id, field, digest, salt, text)
       select action_id, 'more', sha256('ab'), 'a', 'b' from action_texts where field = 'why'`,
    ],
  ] as const) {
    test(name, async () => {
      const where = '(select id from operator_actions where number = 4)';
      await change(
        `${statement}${/where/.test(statement) ? ' and' : ' where'} action_id = ${where}`,
      );
      assert.deepEqual(await kinds(), [['text', 4]]);
    });
  }

  test('a deleted action, the first, one in the middle or several', async () => {
    await change('delete from operator_actions where number in (1, 3, 4)');
    const { differences } = await verify();
    assert.deepEqual(
      differences.map(({ detail }) => detail),
      ['Action 1 is missing.', 'Actions 3 to 4 are missing.'],
    );
  });

  test('a deleted tail', async () => {
    await change('delete from operator_actions where number > 3');
    assert.deepEqual(await kinds(), [['tail', 3]]);
  });

  test('a deleted end of the chain', async () => {
    await change('delete from operator_chain');
    const { differences } = await verify();
    assert.ok(differences.some(({ kind }) => kind === 'tail'));
    await change(`insert into operator_chain values (true, 0, '')`);
  });

  test('an action that was slipped in', async () => {
    const slip = (number: string) =>
      change(`insert into operator_actions (id, at, operator, action, details, number, hash)
        values (gen_random_uuid(), '2026-01-02', 'thabo', 'keys reencrypt', '{}', ${number}, '')`);
    // Each action must have a place in the chain.
    await assert.rejects(slip('null'), { code: '23502' });
    await assert.rejects(slip('0'), { code: '23514' });
    await slip('6');
    assert.deepEqual(await kinds(), [
      ['changed', 6],
      ['tail', 6],
    ]);
  });

  test('many changed actions: some are named, the others are counted, and all are read', async () => {
    const { end } = await verify();
    await change(`insert into operator_actions (id, at, operator, action, details, number, hash)
      select gen_random_uuid(), now(), 'thabo', 'keys reencrypt', '{}', number, ''
      from generate_series(6, 5_050) number`);
    const later = { number: 5_050, hash: '00' };
    const { actions, differences } = await verifyOperatorChain(service.deps, [end, later]);
    assert.equal(actions, 5_050);
    assert.deepEqual(
      differences.slice(19).map(({ kind, number, detail }) => [kind, number, detail]),
      [
        ['changed', 25, 'Action 25 was changed, or the hash of the action before it was.'],
        ['changed', null, 'More actions that were changed: 5025.'],
        ['tail', 5_050, 'The chain ended with action 5; the last action here is 5050.'],
        [
          'anchor',
          5_050,
          'Action 5050 is missing, or its hash is not the one that was kept or posted.',
        ],
      ],
    );
  });

  test('a changed action behind more strange texts than are named', async () => {
    const { pool } = service.deps.database;
    for (let count = 6; count <= 30; count += 1) await record(`action ${count}`);
    await pool.query("update action_texts set text = null, salt = null, erased_at = '2026-01-02'");
    await change("update action_texts set digest = sha256('no') where field = 'why'");
    await change("update operator_actions set operator = 'thabo' where number = 29");
    const found = await kinds();
    assert.deepEqual(found.slice(19), [
      ['text', 20],
      ['changed', 29],
      ['text', null],
    ]);
  });

  test('a chain that was rewritten as a whole, if an earlier end was recorded', async () => {
    const { end } = await verify();
    assert.deepEqual((await verify(end)).differences, []);
    await record('later');
    assert.deepEqual((await verify(end)).differences, []);
    // Cut off the last three and write another chain from there, with the right hashes.
    await change(`
      delete from action_texts t using operator_actions a where a.id = t.action_id and a.number > 3;
      delete from operator_actions where number > 3;
      update operator_chain c set number = 3, hash = a.hash from operator_actions a where a.number = 3`);
    for (let count = 4; count <= 6; count += 1) await record('forged');
    assert.deepEqual(await kinds(), []);
    const { differences } = await verify(end);
    assert.deepEqual(
      differences.map(({ kind, number }) => [kind, number]),
      [['anchor', 5]],
    );
  });
});

test('what a person wrote is not in the chained row, is shown in its place, and can be erased', async () => {
  const { pool, db } = service.deps.database;
  const chained = async () =>
    (await pool.query('select details from operator_actions where number = 1')).rows[0].details;
  const shown = async () =>
    (await listOperatorActions(db, {}, 10)).find(({ number }) => number === 1)?.details;
  const { note, amounts, nested, why } = await chained();
  assert.deepEqual([note, amounts, nested.b, nested.a], ['action 1', [1, 2.5], 1, null]);
  for (const { text_sha256, ...more } of [nested.reason, why]) {
    assert.match(text_sha256, /^[0-9a-f]{64}$/);
    assert.deepEqual(more, {});
  }
  const rest = { note, amounts, why: 'action 1' };
  assert.deepEqual(await shown(), {
    ...rest,
    nested: { b: 1, a: null, reason: 'action 1: Thandi phoned' },
  });
  await pool.query(`update action_texts set text = null, salt = null, erased_at = '2026-01-02'
    where text like '%Thandi%'`);
  assert.deepEqual(await shown(), {
    ...rest,
    nested: { b: 1, a: null, reason: 'erased on 2026-01-02' },
  });
  const { textsErased, differences } = await verify();
  assert.deepEqual([textsErased, differences], [5, []]);
});

test('no details can pass for the digest of a text', async () => {
  for (const details of [{ text_sha256: 'x' }, { filters: [{ text_sha256: null }] }]) {
    const recorded = operate(service.deps, 'nomsa', 'test action', async () => ({
      ...{ subject_id: null, details, result: null },
    }));
    await assert.rejects(recorded, /text_sha256/);
  }
  assert.deepEqual(await kinds(), []);
});

test('concurrent actions form one chain', async () => {
  await Promise.all(Array.from({ length: 20 }, (_, index) => record(`concurrent ${index}`)));
  const { actions, end, differences } = await verify();
  assert.deepEqual([actions, end.number, differences], [25, 25, []]);
});

test('an action that fails leaves no number behind', async () => {
  await assert.rejects(
    operate(service.deps, 'nomsa', 'test action', async () => {
      throw new Error('no');
    }),
  );
  await record('next');
  assert.deepEqual(await kinds(), []);
});

test('a change whose action cannot be appended is not committed', async () => {
  const { pool } = service.deps.database;
  const origin = origins[2];
  assert(origin && 'session_id' in origin);
  const { person_id, session_id } = origin;
  const rename = () =>
    operate({ ...service.deps, origin }, 'nomsa', 'test action', async (db) => {
      await sql`update people set name = 'Changed' where id = ${person_id}`.execute(db);
      return { subject_id: person_id, details: {}, result: null };
    });
  const end = (at: string | null) =>
    pool.query('update console_sessions set ended_at = $1 where id = $2', [at, session_id]);
  await end('2026-01-02');
  await assert.rejects(rename(), SessionEnded);
  await end(null);
  await change('delete from operator_chain');
  await assert.rejects(rename(), { code: '23502' });
  await change("insert into operator_chain (id, number, hash) values (true, 0, sha256(''))");
  const { rows } = await pool.query("select from people where name = 'Changed'");
  assert.equal(rows.length, 0);
});

test('tranche audit verify prints the end, finds it again, and exits with 1 after a change', async () => {
  const tranche = commandLine({ DATABASE_URL: service.databaseUrl });
  const { end, actions, differences } = await tranche.json('audit', 'verify');
  assert.deepEqual([actions, differences], [5, []]);
  assert.match(end, /^5:[0-9a-f]{64}$/);
  assert.deepEqual((await tranche.json('audit', 'verify', '--since', end)).differences, []);
  const { stdout } = await tranche.run('audit', 'verify');
  assert.equal(stdout, `5 actions, nothing changed.\nThe end is ${end}.\n`);
  await change("update operator_actions set operator = 'thabo' where number = 2");
  const changed = await tranche.run('audit', 'verify');
  assert.equal(changed.code, 1);
  assert.match(changed.stdout, /Action 2 was changed, or the hash of the action before it was\./);
  await tranche.refused(2, /NUMBER:HASH/, 'audit', 'verify', '--since', 'yesterday');
});
