import type { Config } from '#config.ts';
import { serversOf } from '#platform/database/servers.ts';
import { sealingCiphers } from '#platform/shared/sealing.ts';
import { isAddress, isLocal, type Reader } from './reader.ts';

// Reads the settings for the database, for the keys that encrypt what it stores, and for the store
// that counts requests against limits.

type Storage = Pick<
  Config,
  'databaseUrl' | 'masterKeys' | 'sealingCipher' | 'redisUrl' | 'rateLimitStore'
>;

export function readStorage(reader: Reader): Storage {
  const databaseUrl = readDatabaseUrl(reader);
  const masterKeys = readMasterKeys(reader);
  const sealingCipher = reader.choice('SEALING_CIPHER', sealingCiphers, 'aes-256-gcm');
  const redisUrl = readRedisUrl(reader);
  const rateLimitStore = readRateLimitStore(reader, databaseUrl, redisUrl);
  return { databaseUrl, masterKeys, sealingCipher, redisUrl, rateLimitStore };
}

function readDatabaseUrl({ text, problem, refuseInsecure, isProduction }: Reader): string | null {
  const databaseUrl = text('DATABASE_URL') ?? null;
  const servers = databaseUrl === null ? [] : serversOf(databaseUrl);
  if (servers === null) {
    problem(
      'DATABASE_URL must be an address that begins with postgres:// or postgresql://. It may name several servers: postgres://user@a:5432,b:5432/tranche.',
    );
  } else if (isProduction && servers.some(hasTwoModes)) {
    problem('DATABASE_URL must have sslmode at most once: the driver would use the last one.');
  } else if (servers.some(isPlaintext)) {
    refuseInsecure(
      'database-plaintext',
      'DATABASE_URL must ask for TLS in production (sslmode=verify-full), unless the server is local.',
    );
  }
  if (isProduction && databaseUrl === null) {
    problem('DATABASE_URL must be set in production: the embedded database is for sandboxes.');
  }
  return databaseUrl;
}

/**
 * Whether data may travel to the database unencrypted, or to a server whose certificate is not
 * checked. The driver prefers `?host=`, and takes the host from the environment if the URL has
 * none.
 */
function isPlaintext(databaseUrl: string): boolean {
  const { hostname, searchParams } = new URL(databaseUrl);
  const host = decodeURIComponent(searchParams.getAll('host').at(-1) ?? hostname);
  if (host !== '' && isLocal(host)) return false;
  const mode = searchParams.get('sslmode') ?? '';
  const isChecked = mode === 'verify-full' || mode === 'verify-ca' || mode === 'require';
  return !isChecked || searchParams.get('uselibpqcompat') === 'true';
}

const hasTwoModes = (databaseUrl: string) =>
  ['sslmode', 'uselibpqcompat'].some(
    (name) => new URL(databaseUrl).searchParams.getAll(name).length > 1,
  );

function readMasterKeys({ text, problem, isProduction }: Reader): Buffer[] {
  const keys: Buffer[] = [];
  for (const name of ['MASTER_KEY', 'MASTER_KEY_PREVIOUS']) {
    const value = text(name);
    if (value === undefined) continue;
    const key = readMasterKey(value);
    // A weak earlier key must stay readable until a rotation has replaced it.
    const mustBeStrong = isProduction && name === 'MASTER_KEY';
    if (!key || (mustBeStrong && !(isRandom(key) && isGenerated(value)))) {
      problem(`${name} must be 32 random bytes in Base64 or hex (openssl rand -base64 32).`);
    } else {
      keys.push(key);
    }
  }
  if (text('MASTER_KEY_PREVIOUS') !== undefined && text('MASTER_KEY') === undefined) {
    problem('MASTER_KEY_PREVIOUS is set without MASTER_KEY.');
  }
  if (isProduction && text('MASTER_KEY') === undefined) {
    problem('MASTER_KEY must be set in production (openssl rand -base64 32); keep it safe.');
  }
  return keys;
}

export function readMasterKey(text: string): Buffer | null {
  const isHex = /^[0-9a-f]{64}$/i.test(text);
  const isBase64 = /^[A-Za-z0-9+/_-]{43}=?$/.test(text);
  return isHex || isBase64 ? Buffer.from(text, isHex ? 'hex' : 'base64') : null;
}

/**
 * Zeros, a repeated pattern or encoded words are not a key. 32 random bytes have about 30 different
 * values, and about 13 of them occur in text. Text may have some other bytes: an accented letter
 * has two.
 */
const isRandom = (key: Buffer) => new Set(key).size >= 16 && key.filter(isOfText).length < 28;

const isOfText = (byte: number) => (byte >= 0x20 && byte <= 0x7e) || (byte >= 0x09 && byte <= 0x0d);

/**
 * Text that a person typed can have the form of Base64. Random Base64 has lower and upper case
 * letters and, in all but one of 7,000 keys, a digit or a sign.
 */
const isGenerated = (text: string) =>
  text.length === 64 || [/[a-z]/, /[A-Z]/, /[0-9+/_-]/].every((one) => one.test(text));

function readRedisUrl({ text, problem, refuseInsecure }: Reader): string | null {
  const redisUrl = text('REDIS_URL') ?? null;
  if (redisUrl !== null && !isAddress(redisUrl, /^rediss?:\/\//)) {
    problem('REDIS_URL must be an address that begins with redis:// or rediss://.');
  } else if (redisUrl?.startsWith('redis:') && !isLocal(new URL(redisUrl).hostname)) {
    refuseInsecure(
      'redis-plaintext',
      'REDIS_URL must begin with rediss:// in production, unless the server is local.',
    );
  }
  return redisUrl;
}

function readRateLimitStore(
  { text, choice, problem }: Reader,
  databaseUrl: string | null,
  redisUrl: string | null,
): Config['rateLimitStore'] {
  if (text('RATE_LIMIT_STORE') === undefined) return null;
  const store = choice('RATE_LIMIT_STORE', ['memory', 'postgres', 'redis'] as const, 'postgres');
  if (store === 'redis' && redisUrl === null) {
    problem('RATE_LIMIT_STORE is redis, so REDIS_URL must be set.');
  }
  if (store === 'memory' && databaseUrl !== null) {
    problem('RATE_LIMIT_STORE is memory: this needs the embedded database and a single process.');
  }
  return store;
}
