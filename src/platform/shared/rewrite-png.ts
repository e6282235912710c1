import { crc32, deflateSync, inflateSync } from 'node:zlib';
import { readImage } from './file-type.ts';

// Rewrites a PNG from its pixels. Text, locations, colour profiles, animations and data of other
// formats do not survive.

export type ImageBounds = {
  bytesMax: number;
  sideMin: number;
  widthMax: number;
  heightMax: number;
};

/** How many values a pixel has, by colour type: grey, RGB, palette, grey with alpha, RGBA. */
const valuesOf: Record<number, number> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };
const known = ['IHDR', 'PLTE', 'tRNS', 'IDAT', 'IEND'];
const start = Buffer.from('89504e470d0a1a0a', 'hex');

/** The new file, or what is wrong with the given one. */
export function rewritePng(
  given: Buffer,
  bounds: ImageBounds,
): { content: Buffer } | { problem: string } {
  const { bytesMax, sideMin, widthMax, heightMax } = bounds;
  if (given.length > bytesMax) return { problem: `It is larger than ${bytesMax / 1_000} kB.` };
  const image = readImage(given);
  if (image?.type !== 'image/png') return { problem: 'It is not a whole PNG.' };
  const { width, height } = image;
  if (width > widthMax || height > heightMax || Math.min(width, height) < sideMin) {
    return {
      problem: `It has ${width} × ${height} pixels. It may have ${sideMin} × ${sideMin} to ${widthMax} × ${heightMax}.`,
    };
  }
  const chunks = readChunks(given);
  const header = chunks?.get('IHDR');
  if (!chunks || header?.length !== 13) return { problem: 'It is damaged.' };
  const values = valuesOf[header[9] ?? -1];
  const isPlain = header[8] === 8 && header[10] === 0 && header[11] === 0 && header[12] === 0;
  if (values === undefined || !isPlain) {
    return { problem: 'Save it with 8 bits per channel and without interlacing.' };
  }
  const colours = readColours(chunks, header[9] ?? 0);
  const rows = inflateRows(chunks.get('IDAT'), { height, bytes: width * values });
  if (colours === null || rows === null) return { problem: 'It is damaged.' };
  const content = Buffer.concat([
    start,
    writeChunk('IHDR', header),
    ...colours,
    writeChunk('IDAT', deflateSync(rows, { level: 9 })),
    writeChunk('IEND', Buffer.alloc(0)),
  ]);
  return content.length > bytesMax
    ? { problem: `It is larger than ${bytesMax / 1_000} kB.` }
    : { content };
}

type Chunks = Map<string, Buffer>;

/**
 * The chunks by type, with those of the pixels joined. Null if one is truncated, altered or out of
 * place.
 */
function readChunks(bytes: Buffer): Chunks | null {
  const chunks: Chunks = new Map();
  let before = '';
  for (let at = start.length; at < bytes.length; ) {
    if (at + 12 > bytes.length) return null;
    const end = at + 8 + bytes.readUInt32BE(at);
    if (end + 4 > bytes.length) return null;
    if (crc32(bytes.subarray(at + 4, end)) !== bytes.readUInt32BE(end)) return null;
    const type = bytes.toString('latin1', at + 4, at + 8);
    const data = bytes.subarray(at + 8, end);
    const earlier = chunks.get(type);
    const continues = type === 'IDAT' && before === 'IDAT';
    // Ancillary chunks such as texts have a type in lower case. They are dropped, and may repeat.
    // Every other chunk occurs once, except that the pixels may be divided.
    const isDropped = /^[a-z]/.test(type) && type !== 'tRNS';
    if (!isDropped && !known.includes(type)) return null;
    if (earlier && !continues && !isDropped) return null;
    chunks.set(type, earlier && continues ? Buffer.concat([earlier, data]) : data);
    before = type;
    at = end + 4;
    if (type === 'IEND' && at !== bytes.length) return null;
  }
  return before === 'IEND' ? chunks : null;
}

/** The palette and the transparent colours, as chunks. Null if they do not fit the colour type. */
function readColours(chunks: Chunks, type: number): Buffer[] | null {
  const [palette, transparency] = [chunks.get('PLTE'), chunks.get('tRNS')];
  const kept: Buffer[] = [];
  if (type === 3) {
    if (!palette || palette.length % 3 !== 0 || palette.length > 768) return null;
    if (palette.length === 0 || (transparency?.length ?? 0) > palette.length / 3) return null;
    kept.push(writeChunk('PLTE', palette));
  } else if (transparency && transparency.length !== { 0: 2, 2: 6 }[type]) return null;
  return transparency ? [...kept, writeChunk('tRNS', transparency)] : kept;
}

/** Exactly the rows of the image, each preceded by its filter byte, and never more than that. */
function inflateRows(
  data: Buffer | undefined,
  { height, bytes }: { height: number; bytes: number },
): Buffer | null {
  const length = height * (bytes + 1);
  try {
    const rows = inflateSync(data ?? Buffer.alloc(0), { maxOutputLength: length });
    if (rows.length !== length) return null;
    for (let at = 0; at < length; at += bytes + 1) if ((rows[at] ?? 9) > 4) return null;
    return rows;
  } catch {
    return null;
  }
}

function writeChunk(type: string, data: Buffer): Buffer {
  const chunk = Buffer.alloc(data.length + 12);
  chunk.writeUInt32BE(data.length, 0);
  chunk.write(type, 4, 'latin1');
  data.copy(chunk, 8);
  chunk.writeUInt32BE(crc32(chunk.subarray(4, -4)), chunk.length - 4);
  return chunk;
}
