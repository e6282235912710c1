/**
 * A heartbeat whose request timed out may arrive at the gateway after later ones. Each has one of
 * these slots in turn, so it overwrites none of the next three, and the highest of all slots counts
 * (decision 0097). An export of payouts writes two.
 */
export const slots = [0, 1, 2, 3] as const;

export const slotOf = (count: number) => count % slots.length;
