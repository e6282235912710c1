import { crc32, deflateSync } from 'node:zlib';
import encodeQR from 'qr';

// The QR code of a link, for a screen and for print. It stays readable if 15 % of it is dirty or
// torn.

/** The width of the white border in modules. Scanners need four. */
const border = 4;

const modulesOf = (text: string): boolean[][] => encodeQR(text, 'raw', { ecc: 'medium', border });

/** The dark modules as one SVG path, in a square box of `size` units. */
export function qrPath(text: string): { size: number; path: string } {
  const modules = modulesOf(text);
  const runs = modules.flatMap((row, y) =>
    row.flatMap((isDark, x) => {
      if (!isDark || row[x - 1]) return [];
      const end = row.indexOf(false, x);
      const width = (end === -1 ? row.length : end) - x;
      return [`M${x} ${y}h${width}v1h-${width}z`];
    }),
  );
  return { size: modules.length, path: runs.join('') };
}

export function qrSvg(text: string): string {
  const { size, path } = qrPath(text);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size} ${size}" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h${size}v${size}H0z"/><path d="${path}"/></svg>\n`;
}

/** Pixels per module. A code is about 9 cm wide at 300 dots per inch. */
const scale = 20;

/** A greyscale PNG of one bit per pixel. */
export function qrPng(text: string): Buffer {
  const modules = modulesOf(text);
  const pixels = modules.length * scale;
  const bytesOfLine = Math.ceil(pixels / 8);
  const lines = modules.flatMap((row) => {
    // The first byte of a line says that the line is not filtered. A set bit is white.
    const line = Buffer.alloc(1 + bytesOfLine);
    for (let x = 0; x < pixels; x++) {
      const isDark = row[Math.floor(x / scale)] === true;
      if (!isDark) line[1 + (x >> 3)] = (line[1 + (x >> 3)] as number) | (0x80 >> (x & 7));
    }
    return Array<Buffer>(scale).fill(line);
  });
  const header = Buffer.alloc(13);
  header.writeUInt32BE(pixels, 0);
  header.writeUInt32BE(pixels, 4);
  header.set([1, 0, 0, 0, 0], 8);
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    pngChunk('IHDR', header),
    pngChunk('IDAT', deflateSync(Buffer.concat(lines))),
    pngChunk('IEND', Buffer.alloc(0)),
  ]);
}

function pngChunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, check]);
}
