/** Mastercard's advice codes that ask to wait (24 to 30), with the hours. */
const adviceHours: Record<string, number> = {
  '24': 1,
  '25': 24,
  '26': 48,
  '27': 96,
  '28': 144,
  '29': 192,
  '30': 240,
};

/** How long the network asks to wait before the card is charged again; empty if it does not ask. */
export function waitOf(adviceCode: string | null | undefined): { wait_hours?: number } {
  const wait_hours = adviceHours[adviceCode ?? ''];
  return wait_hours === undefined ? {} : { wait_hours };
}
