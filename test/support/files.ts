import { crc32, deflateSync } from 'node:zlib';

// Small but complete files, so that code that inspects their content accepts them.

export const pdfFile = (text: string): Buffer => Buffer.from(`%PDF-1.7\n${text}\n%%EOF\n`);

/** A PNG in one colour. */
export function pngFile(width: number, height: number): Buffer {
  const size = Buffer.alloc(13);
  size.writeUInt32BE(width, 0);
  size.writeUInt32BE(height, 4);
  // Red, green and blue have eight bits each.
  size.writeUInt16BE(0x0802, 8);
  const line = Buffer.concat([Buffer.from([0]), Buffer.alloc(3 * width, 0x5f)]);
  const pixels = deflateSync(Buffer.concat(Array.from({ length: height }, () => line)));
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    pngChunk('IHDR', size),
    pngChunk('IDAT', pixels),
    pngChunk('IEND', Buffer.alloc(0)),
  ]);
}

/** A chunk of a PNG, with its checksum. */
export function pngChunk(name: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(name), data]);
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, check]);
}
