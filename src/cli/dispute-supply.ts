import { basename } from 'node:path';
import { type EvidenceFileKind, evidenceFileKinds } from '#gateway/evidence.ts';
import { mustSeeDispute } from '#operating/operations/disputes.ts';
import { evidenceFileBytesMax } from '#platform/shared/uploads.ts';
import { fileNameMax, type Supplied, suppliedNames } from '#purchases/disputes/supplied.ts';
import { addFile, removeFile, supplyEvidence } from '#purchases/disputes/supply-evidence.ts';
import { oneOf, UsageError } from './command.ts';
import { type Connection, viewerOf } from './connect.ts';
import { readUpload } from './read-upload.ts';

type Supply = {
  /** An empty text removes a field. */
  fields: [keyof Supplied, string][];
  files: { kind: EvidenceFileKind; file: { name: string; content: Buffer } | null }[];
};

/** Reads `--field NAME=TEXT` and `--file KIND=PATH`, before anything is changed. */
export async function readSupply(fields: string[], files: string[]): Promise<Supply> {
  return {
    fields: fields.map((given) => pairOf(given, suppliedNames, 'field')),
    files: await Promise.all(
      files.map(async (given) => {
        const [kind, path] = pairOf(given, evidenceFileKinds, 'file');
        if (path === '') return { kind, file: null };
        const content = await readUpload(path, evidenceFileBytesMax);
        return { kind, file: { name: basename(path).slice(-fileNameMax), content } };
      }),
    ),
  };
}

function pairOf<Name extends string>(
  given: string,
  names: readonly Name[],
  option: string,
): [Name, string] {
  const at = given.indexOf('=');
  if (at < 0) throw new UsageError(`--${option} is "${given}" and must be ${names[0]}=… .`);
  return [oneOf(given.slice(0, at), names, option), given.slice(at + 1).trim()];
}

/** Changes what is supplied. Fields that are not given stay as they are. */
export async function supply(deps: Connection, text: string, given: Supply): Promise<void> {
  const dispute = await mustSeeDispute(viewerOf(deps), text);
  if (given.fields.length > 0) {
    const all = { ...dispute.supplied, ...Object.fromEntries(given.fields) };
    const facts = Object.fromEntries(Object.entries(all).filter(([, fact]) => fact !== ''));
    await supplyEvidence(deps, deps.operator, dispute.id, facts, dispute.supplied_at);
  }
  for (const { kind, file } of given.files) {
    if (file === null) await removeFile(deps, deps.operator, dispute.id, kind);
    else await addFile(deps, deps.operator, dispute.id, { kind, ...file });
  }
}
