// Lets only one bootstrap work at a time, because two terminals may start at once.

import fs from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { Refusal, root, say } from './common.mjs';
import { stopCurrent } from './processes.mjs';

const lockFile = path.join(root, '.install.lock');
const heartbeatMilliseconds = 1_000;
const staleMilliseconds = 120_000;

/**
 * The lock names the holder's processes, and the holder touches it every second. A killed start may
 * leave a lock behind. A lock is stale if its processes are gone, or if it has not been touched for
 * two minutes, because their ids may by then belong to other processes.
 * @param {() => Promise<void>} work
 */
export async function withLock(work) {
  let told = false;
  while (!takeLock()) {
    const holder = readLock();
    if (holder === null) continue;
    if (holder.isStale) {
      removeStale(holder.text);
      continue;
    }
    if (!told) say('Another start is installing; waiting for it.');
    told = true;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  const heartbeat = setInterval(() => {
    const now = new Date();
    fs.utimes(lockFile, now, now, () => {});
  }, heartbeatMilliseconds);
  const release = () => fs.rmSync(lockFile, { force: true });
  const interrupted = (signal) => {
    stopCurrent(signal);
    release();
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, interrupted);
  try {
    await work();
  } finally {
    clearInterval(heartbeat);
    release();
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.removeAllListeners(signal);
  }
}

/**
 * Adds a process to the lock. If this process is killed, npm continues alone, and the next start
 * must wait for it.
 * @param {number | undefined} pid
 */
export function addToLock(pid) {
  fs.writeFileSync(lockFile, `${process.pid} ${pid ?? ''}\n`);
}

function takeLock() {
  try {
    fs.writeFileSync(lockFile, `${process.pid}\n`, { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw notWritable(error);
  }
}

/** @param {NodeJS.ErrnoException} error */
function notWritable({ code }) {
  return new Refusal(
    `${root} cannot be written (${code}), and something has to be installed there. Run this once as the user who owns the folder.`,
  );
}

/** Windows also denies access for a moment, while another process removes a file. */
const denials = process.platform === 'win32' ? ['EROFS'] : ['EACCES', 'EPERM', 'EROFS'];

/**
 * Throws if this user may not read or remove the lock, because waiting for it would never end. Any
 * other error is ignored: another start may just have removed the lock.
 * @param {NodeJS.ErrnoException} error
 */
function refuseIfDenied(error) {
  if (denials.includes(error.code)) throw notWritable(error);
}

function readLock() {
  try {
    const text = fs.readFileSync(lockFile, 'utf8');
    const silence = Date.now() - fs.statSync(lockFile).mtimeMs;
    const pids = text.trim().split(' ').map(Number);
    // An empty file means that its holder is about to write to it.
    const isHeld = text === '' || pids.some((pid) => pid !== process.pid && isAlive(pid));
    return { text, isStale: !isHeld || silence > staleMilliseconds };
  } catch (error) {
    refuseIfDenied(error);
    return null;
  }
}

/**
 * Renames the lock before removing it, so that only one of several waiting starts removes it. If
 * the renamed file turns out to be the new lock of a quicker start, it is put back.
 * @param {string} text
 */
function removeStale(text) {
  const aside = `${lockFile}.${process.pid}`;
  try {
    fs.renameSync(lockFile, aside);
    if (fs.readFileSync(aside, 'utf8') !== text) fs.linkSync(aside, lockFile);
  } catch (error) {
    refuseIfDenied(error);
  }
  fs.rmSync(aside, { force: true });
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}
