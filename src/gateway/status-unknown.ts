import { OutcomeUnknown } from './gateway.ts';

/**
 * The gateway is in a state that this version does not know. Nothing is decided yet, and an operator
 * must look at it.
 */
export class StatusUnknown extends OutcomeUnknown {
  constructor(what: string, status: string) {
    super(`${what} is ${status.slice(0, 50)}, which is not known here`);
  }
}
