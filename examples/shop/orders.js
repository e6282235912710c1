// Stores the shop's orders and the merchant configuration in one small file.

import { EventEmitter } from 'node:events';
import fs from 'node:fs';

export function openStore(file) {
  const state = read(file) ?? { orders: [], config: null };
  const orders = new Map(state.orders.map((order) => [order.id, order]));
  const lookedUpAt = new Map();
  const changes = new EventEmitter().setMaxListeners(0);

  /** Writes a new file, flushes it and renames it, before the shop acknowledges a callback. */
  function write() {
    const text = JSON.stringify({ ...state, orders: [...orders.values()] }, null, 2);
    fs.writeFileSync(`${file}.new`, `${text}\n`, { mode: 0o600, flush: true });
    fs.renameSync(`${file}.new`, file);
  }

  return {
    /** Emits an order's id when the order changes. */
    changes,
    find: (id) => orders.get(id),
    /** The newest orders come first. */
    list: () => [...orders.values()].reverse(),
    add(order) {
      const added = { ...order, events: [{ at: new Date().toISOString(), text: 'Order placed' }] };
      orders.set(order.id, added);
      write();
      return added;
    },
    change(order, fields, text) {
      Object.assign(order, fields);
      order.events.push({ at: new Date().toISOString(), text });
      write();
      changes.emit(order.id);
    },
    /** Chooses the matching order whose last look-up is longest ago; new orders come first. */
    nextToLookUp(fits) {
      const since = (order) => lookedUpAt.get(order.id) ?? 0;
      const [order] = this.list()
        .filter(fits)
        .sort((a, b) => since(a) - since(b));
      if (order) lookedUpAt.set(order.id, Date.now());
      return order;
    },
    config: () => state.config,
    keepConfig(config) {
      state.config = config;
      write();
    },
  };
}

function read(file) {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT') return null;
    throw error;
  }
}
