import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { FreeText } from '#record/actions/free-text.ts';
import { operate } from '#record/actions/operate.ts';
import { findNodes } from '../support/database-server.ts';
import { type Paying, startPaying } from '../support/payments.ts';

const { hasCitus } = await findNodes();

describe('history cannot be changed', { skip: hasCitus && 'Citus has no triggers' }, () => {
  let paying: Paying;
  before(async () => {
    paying = await startPaying();
    const shopper = await paying.shopper({ amount: 100_000 });
    await shopper.pay(3);
    await paying.work();
    await operate(paying.service.deps, 'nomsa', 'test action', async () => ({
      subject_id: null,
      details: { reason: new FreeText('Thandi phoned') },
      result: null,
    }));
  });
  after(() => paying.close());

  const query = (text: string) => paying.service.deps.database.pool.query(text);
  const refused = (text: string, reason = /is append-only/) =>
    assert.rejects(query(text), { code: '42501', message: reason });

  for (const [table, column] of [
    ['postings', 'id'],
    ['operator_actions', 'id'],
    ['action_texts', 'field'],
    ['callback_attempts', 'id'],
    ['operator_chain', 'number'],
    ['message_attempts', 'number'],
  ]) {
    test(`${table} cannot be updated, deleted from or truncated`, async () => {
      const { rows } = await query(`select count(*) from ${table}`);
      assert.ok(rows[0].count > 0);
      await refused(`update ${table} set ${column} = ${column}`);
      await refused(`delete from ${table}`);
      await refused(`truncate ${table} cascade`);
    });
  }

  test('an attempt to deliver a callback is closed once, and cannot change after that', async () => {
    const open = `insert into callback_attempts (merchant_id, id, callback_id, number, run, trigger,
        started_at, outcome, request_headers)
      select merchant_id, gen_random_uuid(), callback_id, 99, 9, 'retry', started_at, 'unknown', '{}'
      from callback_attempts where number = 1`;
    const close = "outcome = 'failed', finished_at = started_at, reason = 'http_500'";
    const client = await paying.service.deps.database.pool.connect();
    const attempt = async (...statements: string[]) => {
      await client.query('begin');
      try {
        for (const statement of [open, ...statements]) await client.query(statement);
      } finally {
        await client.query('rollback');
      }
    };
    const where = 'where number = 99';
    try {
      await attempt(`update callback_attempts set ${close} ${where}`);
      for (const statements of [
        [`update callback_attempts set reason = 'dns' ${where}`],
        [`update callback_attempts set ${close}, request_headers = '{"a": "b"}' ${where}`],
        [
          `update callback_attempts set ${close}, started_at = started_at - interval '1 day' ${where}`,
        ],
        [
          `update callback_attempts set ${close} ${where}`,
          `update callback_attempts set reason = 'dns' ${where}`,
        ],
      ]) {
        await assert.rejects(attempt(...statements), { code: '42501' }, statements.join('; '));
      }
    } finally {
      client.release();
    }
  });

  test("an attempt's answer is emptied only when its shopper is erased", async () => {
    const empty = 'update callback_attempts set response_headers = null, response_body = null';
    await refused(empty, /append-only until its shopper is erased/);
    const client = await paying.service.deps.database.pool.connect();
    const after = async (statement: string) => {
      await client.query('begin');
      try {
        await client.query('update checkouts set erased_at = created_at');
        return await client.query(statement);
      } finally {
        await client.query('rollback');
      }
    };
    try {
      assert.ok((await after(empty)).rowCount);
      await assert.rejects(after(`${empty}, response_status = 204`), { code: '42501' });
    } finally {
      client.release();
    }
  });

  test('an attempt is deleted only when its callback counts it as expired', async () => {
    await refused('delete from callback_attempts', /append-only until its rows expire/);
    const client = await paying.service.deps.database.pool.connect();
    try {
      await client.query('begin');
      await client.query('set constraints all immediate');
      await client.query("update callbacks set attempts_expired = 1 where status = 'delivered'");
      const { rowCount } = await client.query('delete from callback_attempts where number = 1');
      assert.ok(rowCount);
    } finally {
      await client.query('rollback');
      client.release();
    }
  });

  test('what a mail server answered can be erased and nothing else', async () => {
    const client = await paying.service.deps.database.pool.connect();
    try {
      await client.query('begin');
      const erase = "update message_attempts set response = 'erased'";
      assert.ok((await client.query(erase)).rowCount);
      await assert.rejects(client.query(`${erase}, outcome = 'sent', number = number + 1`), {
        code: '42501',
      });
    } finally {
      await client.query('rollback');
      client.release();
    }
  });

  test('what an operator wrote can be erased once and nothing else', async () => {
    const client = await paying.service.deps.database.pool.connect();
    const erase = "update action_texts set text = null, salt = null, erased_at = '2026-01-02'";
    const attempt = async (...statements: string[]) => {
      await client.query('begin');
      try {
        for (const statement of statements) assert.ok((await client.query(statement)).rowCount);
      } finally {
        await client.query('rollback');
      }
    };
    try {
      await attempt(erase);
      for (const statements of [
        [`${erase}, digest = sha256('')`],
        ["update action_texts set text = 'Sipho phoned'"],
        [erase, erase],
        [erase, "update action_texts set text = 'no', salt = '', erased_at = null"],
      ]) {
        await assert.rejects(attempt(...statements), { code: '42501' }, statements.join('; '));
      }
    } finally {
      client.release();
    }
  });

  test('a temporary table cannot stand in for the callbacks', async () => {
    const client = await paying.service.deps.database.pool.connect();
    try {
      await client.query('begin');
      await client.query('set constraints all immediate');
      await client.query('create temporary table callbacks as select * from callbacks');
      await client.query('update pg_temp.callbacks set attempts_expired = 99, due_at = null');
      await assert.rejects(client.query('delete from callback_attempts'), { code: '42501' });
    } finally {
      await client.query('rollback');
      client.release();
    }
  });
});
