import { createHash } from 'node:crypto';

/**
 * A version 8 UUID that is derived from its parts: the same parts always give the same id, even in
 * a database that was restored from a backup.
 */
export function derivedId(...parts: [kind: string, ...(string | number)[]]): string {
  const bytes = createHash('sha256').update(parts.join('\n')).digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
