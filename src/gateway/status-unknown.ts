import { OutcomeUnknown } from './gateway.ts';

/**
 * The gateway reports a state that this version does not know, or that says too little. Nothing is
 * decided yet, and an operator must look at the case.
 */
export class StatusUnknown extends OutcomeUnknown {
  constructor(what: string, status: string, comment = 'which this version does not know') {
    super(`${what} has the status ${status.slice(0, 50)}, ${comment}`);
  }
}
