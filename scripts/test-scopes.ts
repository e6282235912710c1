// Node's test runner uses a hook that runs for every promise to find out which test a call belongs
// to. In the tests of a service, that hook took a tenth of the processor time. This file gives the
// runner an AsyncLocalStorage instead, which costs nothing per promise. It must be loaded before
// `node:test`. If another version of Node does not use what is replaced here, its runner works as
// usual.

import asyncHooks from 'node:async_hooks';

const { AsyncLocalStorage, AsyncResource, createHook, executionAsyncId } = asyncHooks;

const scope = new AsyncLocalStorage<number>();
let hooks: asyncHooks.HookCallbacks | null = null;

/**
 * The runner's tests and suites are objects of classes that extend this one. Each of their
 * functions runs in a scope that holds the id of its test or suite.
 */
class Scope extends AsyncResource {
  constructor(type: string, options?: asyncHooks.AsyncResourceOptions) {
    super(type, options);
    hooks?.init?.(this.asyncId(), type, this.triggerAsyncId(), this);
  }

  override runInAsyncScope<This, Result, Args extends unknown[]>(
    work: (this: This, ...args: Args) => Result,
    thisArg?: This,
    ...args: Args
  ): Result {
    return super.runInAsyncScope(() =>
      scope.run(this.asyncId(), () => work.apply(thisArg as This, args)),
    );
  }
}

Object.assign(asyncHooks, {
  AsyncResource: Scope,
  executionAsyncId: () => scope.getStore() ?? executionAsyncId(),
  // The runner makes one hook, when the first test is declared.
  createHook(callbacks: asyncHooks.HookCallbacks) {
    hooks = callbacks;
    return createHook({});
  },
});
await import('node:test');
// The runner keeps the functions that it found. All other code gets Node's own.
Object.assign(asyncHooks, { AsyncResource, executionAsyncId, createHook });
