// Detects a file's type from its bytes. The type that a browser states does not count.

export const fileTypes = ['application/pdf', 'image/png', 'image/jpeg'] as const;
export type FileTypeName = (typeof fileTypes)[number];

/**
 * The file name extensions of each type. A computer opens a file according to its extension, so a
 * file with the extension of a program would run.
 */
export const fileEndings: Record<FileTypeName, readonly [string, ...string[]]> = {
  'application/pdf': ['.pdf'],
  'image/png': ['.png'],
  'image/jpeg': ['.jpg', '.jpeg', '.jfif'],
};

export type ImageSize = { width: number; height: number };

/** The type of a file; null if it is not one of ours or the file is truncated. */
export function readFileType(bytes: Buffer): FileTypeName | null {
  if (isPdf(bytes)) return 'application/pdf';
  return readImage(bytes)?.type ?? null;
}

/** The type and the size of an image; null if the type is not ours or the file is truncated. */
export function readImage(
  bytes: Buffer,
): (ImageSize & { type: Exclude<FileTypeName, 'application/pdf'> }) | null {
  const png = readPng(bytes);
  if (png !== null) return { type: 'image/png', ...png };
  const jpeg = readJpeg(bytes);
  return jpeg && { type: 'image/jpeg', ...jpeg };
}

const isPdf = (bytes: Buffer) =>
  /^%PDF-[12]\.\d/.test(bytes.toString('latin1', 0, 8)) && bytes.subarray(-1024).includes('%%EOF');

const pngStart = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex');
const pngEnd = Buffer.from('0000000049454e44ae426082', 'hex');

function readPng(bytes: Buffer): ImageSize | null {
  if (bytes.length < 45 || !bytes.subarray(0, 16).equals(pngStart)) return null;
  if (!bytes.subarray(-pngEnd.length).equals(pngEnd)) return null;
  return sizeOf(bytes.readUInt32BE(16), bytes.readUInt32BE(20));
}

/** Reads the file marker by marker, up to the frame header, which has the size. */
function readJpeg(bytes: Buffer): ImageSize | null {
  if (bytes.length < 4 || bytes.readUInt16BE(0) !== 0xffd8) return null;
  // A camera may append data of its own after the end of the image.
  if (bytes.lastIndexOf(Buffer.from([0xff, 0xd9])) < 4) return null;
  for (let at = 2; at + 9 < bytes.length; ) {
    if (bytes[at] !== 0xff) return null;
    const marker = bytes[at + 1] ?? 0;
    if (marker === 0xff) {
      at += 1;
      continue;
    }
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return sizeOf(bytes.readUInt16BE(at + 7), bytes.readUInt16BE(at + 5));
    const length = bytes.readUInt16BE(at + 2);
    if (length < 2 || marker === 0xda) return null;
    at += 2 + length;
  }
  return null;
}

const sizeOf = (width: number, height: number): ImageSize | null =>
  width > 0 && height > 0 ? { width, height } : null;
