// Bounds of what people upload. Server and browser share them.

/** A file arrives within the time that a request may take, also over a slow connection. */
export const evidenceFileBytesMax = 2_000_000;

/** A merchant's logo. Pages show it up to 160 × 48, screens with three times as many pixels too. */
export const logoBounds = { bytesMax: 100_000, sideMin: 16, widthMax: 480, heightMax: 144 };
