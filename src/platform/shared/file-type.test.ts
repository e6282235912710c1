import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pdfFile, pngFile } from '../../../test/support/files.ts';
import { readFileType, readImage } from './file-type.ts';

/**
 * A minimal JPEG: an APP0 segment, a frame header (SOF) and the end-of-image marker, without image
 * data.
 */
const jpegFile = Buffer.from(
  'ffd8 ffe0 0004 0000 ffc2 000b 08 000a 0014 01 00110 0 ffd9'.replaceAll(' ', ''),
  'hex',
);

test('a file is what its content says, and has the size that its header says', () => {
  assert.equal(readFileType(pdfFile('text')), 'application/pdf');
  assert.deepEqual(readImage(pngFile(20, 10)), { type: 'image/png', width: 20, height: 10 });
  assert.deepEqual(readImage(jpegFile), { type: 'image/jpeg', width: 20, height: 10 });
  const trailer = Buffer.concat([jpegFile, Buffer.from('camera')]);
  assert.equal(readFileType(trailer), 'image/jpeg');
});

test('a file that is truncated, made up or of another type has no type', () => {
  const whole = [pdfFile('x'.repeat(2_000)), pngFile(2, 2), jpegFile];
  for (const file of whole) assert.equal(readFileType(file.subarray(0, -3)), null);
  for (const bytes of [
    Buffer.alloc(0),
    Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'),
    Buffer.from('GIF89a'),
    Buffer.from('<html>%PDF-1.7 %%EOF'),
    pngFile(0, 5),
    Buffer.concat([Buffer.from([0xff, 0xd8, 0xff]), Buffer.alloc(50), Buffer.from([0xff, 0xd9])]),
    Buffer.from('ffd8ffe000000000000000000000ffd9', 'hex'),
  ]) {
    assert.equal(readFileType(bytes), null);
  }
});
