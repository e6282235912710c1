const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** The smallest version 7 UUID for a time. */
export function firstIdAt(epochMilliseconds: number): string {
  const hex = Math.max(0, epochMilliseconds).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
}

/** The time in a version 7 UUID, in milliseconds since the epoch. */
export const timeOfId = (id: string) => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);

export function isUuid(text: string): boolean {
  return uuidPattern.test(text);
}
