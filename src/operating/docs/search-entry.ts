/** One search result: a chapter of a guide, or of the reference. */
export type Found = { title: string; page: string; path: string; text: string };
