import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

// The programs that a cluster is made of. None of them is a dependency of the project.

export type Parts = {
  patroni: string;
  etcd: string;
  haproxy: string;
  /** The folder with `postgres` and `initdb`. */
  postgres: string;
  /** Null without network namespaces; then no event cuts the network. */
  ip: string | null;
  /** Null if the pooler is not tested. */
  pgbouncer: string | null;
  setpriv: string | null;
  /** Whether this PostgreSQL has Citus. */
  hasCitus: boolean;
};

/**
 * 3.1.0 fixed a primary that was resumed after another one had been promoted, and 4.0.6 checks the
 * value of synchronous_standby_names itself. 4.1 is what this test was run with.
 */
const patroniMin: Version = [4, 1, 0];

export type Version = [number, number, number];

/** The first version number in a text, such as the output of `--version`. */
export function readVersion(text: string): Version | null {
  const [, major, minor, patch] = /(\d+)\.(\d+)(?:\.(\d+))?/.exec(text) ?? [];
  return major === undefined ? null : [Number(major), Number(minor), Number(patch ?? 0)];
}

export function isOlder(one: Version, other: Version): boolean {
  const index = one.findIndex((part, place) => part !== other[place]);
  return index >= 0 && (one[index] ?? 0) < (other[index] ?? 0);
}

/** Finds a program by a setting, in PATH, or where Debian keeps daemons. */
function find(name: string, setting?: string): string | null {
  const given = setting === undefined ? undefined : process.env[setting];
  if (given) return fs.existsSync(given) ? given : null;
  const folders = [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/sbin'];
  return (
    folders.map((folder) => path.join(folder, name)).find((file) => fs.existsSync(file)) ?? null
  );
}

function findPostgres(): string | null {
  const given = process.env.POSTGRES_BIN;
  if (given) return fs.existsSync(path.join(given, 'initdb')) ? given : null;
  const folders = fs
    .globSync('/usr/lib/postgresql/*/bin')
    .filter((folder) => fs.existsSync(path.join(folder, 'initdb')));
  const number = (folder: string) => Number(/\d+/.exec(folder)?.[0] ?? 0);
  return folders.sort((one, other) => number(other) - number(one))[0] ?? null;
}

/** Debian keeps libraries beside the programs, other builds where `pg_config` says. */
function findCitus(postgres: string): boolean {
  const asked = spawnSync(path.join(postgres, 'pg_config'), ['--pkglibdir'], { encoding: 'utf8' });
  const folders = [asked.stdout?.trim(), path.join(postgres, '../lib')];
  return folders.some((folder) => folder && fs.existsSync(path.join(folder, 'citus.so')));
}

/** The parts, or what is missing, as sentences. */
export function findParts(): { parts: Parts } | { missing: string[] } {
  const missing: string[] = [];
  const need = (found: string | null, sentence: string) => {
    if (found === null) missing.push(sentence);
    return found ?? '';
  };
  const patroni = need(
    find('patroni', 'PATRONI'),
    'Patroni 4.1 or newer is missing: install it from PyPI (pip install "patroni[etcd3]" "psycopg[binary]") and name its program in PATRONI.',
  );
  if (patroni !== '') {
    const output = spawnSync(patroni, ['--version'], { encoding: 'utf8' });
    const version = readVersion(output.stdout ?? '');
    if (version === null) missing.push(`${patroni} does not say its version.`);
    else if (isOlder(version, patroniMin)) {
      missing.push(
        `${patroni} is version ${version.join('.')}. It must be 4.1 or newer: with older ones a primary that is resumed can lose acknowledged commits.`,
      );
    }
  }
  const parts: Parts = {
    patroni,
    etcd: need(find('etcd', 'ETCD'), 'etcd is missing (Debian: etcd-server).'),
    haproxy: need(find('haproxy', 'HAPROXY'), 'HAProxy is missing (Debian: haproxy).'),
    postgres: need(
      findPostgres(),
      'PostgreSQL 15 or newer is missing (Debian: postgresql), or POSTGRES_BIN does not name the folder of its programs.',
    ),
    ip: find('ip'),
    pgbouncer: find('pgbouncer', 'PGBOUNCER'),
    setpriv: find('setpriv'),
    hasCitus: false,
  };
  parts.hasCitus = findCitus(parts.postgres);
  if (process.getuid?.() === 0 && parts.setpriv === null) {
    missing.push('setpriv is missing (Debian: util-linux). As root, PostgreSQL needs it.');
  }
  return missing.length > 0 ? { missing } : { parts };
}
