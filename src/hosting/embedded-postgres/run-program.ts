import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/**
 * The environment of every program that we run for the server. Ours is not passed on: it contains
 * secrets, and its PG* variables would change what the server does.
 */
export const serverEnvironment = {
  PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin',
  LC_ALL: 'C',
  TZ: 'UTC',
};

export const runProgram = promisify(execFile);
