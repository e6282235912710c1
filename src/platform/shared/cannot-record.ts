/** The gateway did something that cannot be recorded by itself. The message says why. */
export class CannotRecord extends Error {}
