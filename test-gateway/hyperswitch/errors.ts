/** An error answer in Hyperswitch's form. */
export class HyperswitchError extends Error {
  readonly status: number;
  readonly body: object;

  constructor(status: number, code: string, message: string, more: { reason?: string } = {}) {
    super(message);
    this.status = status;
    this.body = {
      error: { type: status >= 500 ? 'api' : 'invalid_request', message, code, ...more },
    };
  }
}

/** A refusal after a payment was saved. What has been written stays. */
export class LateRefusal extends HyperswitchError {}

/** A body that does not have the form that the server expects. */
export class UnreadableBody extends Error {
  readonly body: object;

  constructor(message: string) {
    super(message);
    this.body = { error: { error_type: 'invalid_request', message, code: 'IR_06' } };
  }
}

export const missing = (what: string) =>
  new HyperswitchError(404, 'HE_02', `${what} does not exist in our records`);

export const invalidValue = (field: string) =>
  new HyperswitchError(400, 'IR_07', `Invalid value provided: ${field}`);

/** Hyperswitch itself limits only the largest amount. The acquirer has all other rules. */
export const amountTooLarge = () =>
  new HyperswitchError(400, 'IR_16', 'amount should not be more than 999999999');

/** The payment's state does not allow the action. */
export const wrongStatus = (action: string, status: string) =>
  new HyperswitchError(
    400,
    'IR_16',
    `You cannot ${action} this payment because it has status ${status}`,
  );

/** Another request about the same payment has not been answered yet. */
export const busy = () =>
  new HyperswitchError(422, 'HE_00', 'There was an issue processing the webhook body');

export const failure = () => new HyperswitchError(500, 'HE_00', 'Something went wrong');
