import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deflateSync } from 'node:zlib';
import { pngChunk, pngFile } from '../../../test/support/files.ts';
import { rewritePng } from './rewrite-png.ts';

const bounds = { bytesMax: 20_000, sideMin: 16, widthMax: 400, heightMax: 100 };
const rewrite = (file: Buffer) => rewritePng(file, bounds);

function written(file: Buffer): Buffer {
  const result = rewrite(file);
  assert.ok('content' in result, JSON.stringify(result));
  return result.content;
}

/** Puts chunks before the pixels. */
function withChunks(file: Buffer, ...chunks: Buffer[]): Buffer {
  const at = file.indexOf('IDAT') - 4;
  return Buffer.concat([file.subarray(0, at), ...chunks, file.subarray(at)]);
}

/** A PNG whose pixels are this stream, in RGB. */
function withPixels(width: number, height: number, pixels: Buffer): Buffer {
  const file = pngFile(width, height);
  const at = file.indexOf('IDAT') - 4;
  return Buffer.concat([file.subarray(0, at), pngChunk('IDAT', pixels), file.subarray(-12)]);
}

test('only pixels and colours of a PNG remain, and it stays the same when it is written again', () => {
  const plain = pngFile(40, 20);
  const text = pngChunk('tEXt', Buffer.from('Comment\0<script>alert(1)</script>'));
  const place = pngChunk('eXIf', Buffer.from('33°55′S'));
  const once = written(withChunks(plain, text, text, place));
  assert.deepEqual(once, written(plain));
  assert.deepEqual(once, written(once));
  assert.equal(once.includes('script'), false);
  // Bytes after the end of the compressed pixels are not pixels.
  const pixels = deflateSync(Buffer.alloc(20 * (40 * 3 + 1)));
  const hidden = withPixels(40, 20, Buffer.concat([pixels, Buffer.from('<?php')]));
  assert.equal(written(hidden).includes('<?php'), false);
});

test('a file that is not a small, whole and plain PNG is refused with the reason', () => {
  const plain = pngFile(40, 20);
  const damaged = Buffer.from(plain);
  damaged.writeUInt8(0x7f, plain.indexOf('IDAT') + 6);
  const header = (change: (header: Buffer) => void) => {
    const data = Buffer.from(plain.subarray(16, 29));
    change(data);
    return Buffer.concat([plain.subarray(0, 8), pngChunk('IHDR', data), plain.subarray(33)]);
  };
  const bomb = deflateSync(Buffer.alloc(10_000_000));
  const palette = pngChunk('PLTE', Buffer.alloc(6));
  for (const [file, reason] of [
    [Buffer.alloc(20_001), 'It is larger than 20 kB.'],
    [Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'), 'It is not a whole PNG.'],
    [plain.subarray(0, -5), 'It is not a whole PNG.'],
    [Buffer.concat([plain, Buffer.from('PK\u0003\u0004')]), 'It is not a whole PNG.'],
    [pngFile(15, 20), 'It has 15 × 20 pixels. It may have 16 × 16 to 400 × 100.'],
    [pngFile(401, 20), 'It has 401 × 20 pixels. It may have 16 × 16 to 400 × 100.'],
    [header((data) => data.writeUInt32BE(2 ** 31, 0)), /It has 2147483648 × 20 pixels/],
    [header((data) => data.writeUInt8(16, 8)), /8 bits per channel/],
    [header((data) => data.writeUInt8(1, 12)), /without interlacing/],
    [header((data) => data.writeUInt8(5, 9)), /8 bits per channel/],
    [header((data) => data.writeUInt8(3, 9)), 'It is damaged.'],
    [damaged, 'It is damaged.'],
    [withPixels(40, 20, bomb), 'It is damaged.'],
    [withPixels(40, 20, deflateSync(Buffer.alloc(100))), 'It is damaged.'],
    [withPixels(40, 20, deflateSync(Buffer.alloc(20 * 121, 9))), 'It is damaged.'],
    [withPixels(40, 20, Buffer.from('no stream')), 'It is damaged.'],
    [withChunks(plain, palette, palette), 'It is damaged.'],
    [withChunks(plain, pngChunk('EVIL', Buffer.alloc(4))), 'It is damaged.'],
    [withChunks(plain, pngChunk('tRNS', Buffer.alloc(5))), 'It is damaged.'],
    [withChunks(plain, Buffer.from('ffffffff', 'hex')), 'It is damaged.'],
  ] as const) {
    const result = rewrite(file as Buffer);
    assert.ok('problem' in result, String(reason));
    if (typeof reason === 'string') assert.equal(result.problem, reason);
    else assert.match(result.problem, reason);
  }
});
