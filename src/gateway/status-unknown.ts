import { OutcomeUnknown } from './gateway.ts';

/**
 * The gateway is in a state that this version does not know, or that says too little. Nothing is
 * decided yet, and an operator must look at it.
 */
export class StatusUnknown extends OutcomeUnknown {
  constructor(what: string, status: string, comment = 'which is not known here') {
    super(`${what} is ${status.slice(0, 50)}, ${comment}`);
  }
}
