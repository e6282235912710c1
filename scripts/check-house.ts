// The rules of CONTRIBUTING that no other tool checks. Part of `npm run check`.

import path from 'node:path';
import { readConfig } from '#config.ts';
import { findAsvsGaps } from './check-asvs.ts';
import { findConsoleImports, findMantineVersions } from './check-console.ts';
import {
  findBadCitations,
  findDeadPaths,
  findLongLines,
  findOneWayLinks,
  findUndocumentedSettings,
  findUnlistedRecords,
  findUnlistedRooms,
  findWrongInvariants,
} from './check-documents.ts';
import { findLongCode } from './check-lengths.ts';
import { findLockGaps } from './check-lock.ts';
import { findUnsafeMigrations } from './check-migrations.ts';
import { findForeignWrites, findRoomCycles, findWrongOrder } from './check-rooms.ts';
import { findAllColumns } from './check-statements.ts';
import { findGatewayNames, findWrongWords } from './check-words.ts';

export function findProblems(root: string): string[] {
  return [
    ...findWrongOrder(root),
    ...findRoomCycles(root),
    ...findForeignWrites(root),
    ...findBadCitations(root),
    ...findUnlistedRecords(root),
    ...findOneWayLinks(root),
    ...findLongLines(root),
    ...findDeadPaths(root),
    ...findUndocumentedSettings(root, readConfig),
    ...findUnlistedRooms(root),
    ...findWrongInvariants(root),
    ...findAsvsGaps(root),
    ...findLockGaps(root),
    ...findMantineVersions(root),
    ...findConsoleImports(root),
    ...findUnsafeMigrations(root),
    ...findAllColumns(root),
    ...findWrongWords(root),
    ...findGatewayNames(root),
    ...findLongCode(root),
  ];
}

if (import.meta.main) {
  const problems = findProblems(path.dirname(import.meta.dirname));
  for (const problem of problems) process.stdout.write(`${problem}\n`);
  if (problems.length > 0) process.exitCode = 1;
}
