/** The gateway did something that the service cannot record by itself. The message says why. */
export class CannotRecord extends Error {}
