// Limits on uploads. Server and browser share them.

/** A file of this size arrives within a request's time limit, even over a slow connection. */
export const evidenceFileBytesMax = 2_000_000;

/**
 * A merchant's logo. Pages show it at up to 160 × 48, and some screens have three times as many
 * pixels.
 */
export const logoBounds = { bytesMax: 100_000, sideMin: 16, widthMax: 480, heightMax: 144 };
