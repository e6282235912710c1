import fs from 'node:fs';

// Requests and their answers, one JSON line each. README.md describes the format.

export type CheckoutStatus = 'received' | 'successful' | 'cancelled' | 'invalid_payload';

export type ListedCheckout = {
  id: string;
  reference: string;
  amount: number;
  status: CheckoutStatus;
};

export type ListedRefund = { id: string; checkout: string; amount: number; status: string };

/** Every answer has its HTTP status. A 200 has the other members, and an error has `detail`. */
type Answer<T extends object> = { status: number; detail?: string } & Partial<T>;

type Calls = {
  create: {
    input: { merchant: string; key: string | null; reference: string; amount: number };
    output: Answer<{ id: string }>;
  };
  get: {
    input: { merchant: string; checkout: string };
    output: Answer<{ checkout: ListedCheckout }>;
  };
  list: {
    input: { merchant: string; page: number; items: number };
    output: Answer<{ checkouts: ListedCheckout[]; more: boolean }>;
  };
  state: { input: { checkout: string }; output: Answer<{ page: string }> };
  pay: { input: { checkout: string }; output: Answer<{ page: string }> };
  refund: {
    input: { merchant: string; key: string | null; checkout: string; amount: number };
    output: Answer<{ id: string }>;
  };
  refunds: {
    input: { merchant: string; page: number; items: number };
    output: Answer<{ refunds: ListedRefund[]; more: boolean }>;
  };
  fault: { input: { name: string }; output: object };
};

export type CallName = keyof Calls;
export type Input<N extends CallName> = Calls[N]['input'];
export type Output<N extends CallName> = Calls[N]['output'];

export type Operation<N extends CallName = CallName> = {
  [M in N]: {
    client: string;
    call: M;
    input: Input<M>;
    /** Null, like `end`, if the answer is unknown. */
    output: Output<M> | null;
    begin: number;
    end: number | null;
  };
}[N];

export type Recorder = {
  /** Does the work and records it. Returns null if the work threw: then the answer is unknown. */
  record<N extends CallName>(
    client: string,
    call: N,
    input: Input<N>,
    work: () => Promise<Output<N>>,
  ): Promise<Output<N> | null>;
};

export function createRecorder(write: (operation: Operation) => void): Recorder {
  return {
    async record(client, call, input, work) {
      const begin = performance.now();
      const output = await work().catch(() => null);
      const end = output === null ? null : performance.now();
      write({ client, call, input, output, begin, end } as Operation);
      return output;
    },
  };
}

export function readHistory(file: string): Operation[] {
  return fs
    .readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Operation);
}
