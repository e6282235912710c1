// The cart is a cookie, `boots.1-mug.2`: products and quantities.

import { products } from './products.js';

const quantityMax = 9;

/** @returns {Map<string, number>} */
export function readCart(cookies = '') {
  const text = /(?:^|; )cart=([^;]*)/.exec(cookies)?.[1] ?? '';
  return cleaned(text.split('-').map((line) => line.split('.')));
}

export function writeCart(cart) {
  return [...cleaned([...cart])].map((line) => line.join('.')).join('-');
}

export function linesOf(cart) {
  return [...cart].map(([id, quantity]) => {
    const { name, amount } = products.find((product) => product.id === id);
    return { id, name, amount, quantity };
  });
}

export function amountOf(cart) {
  return linesOf(cart).reduce((sum, { amount, quantity }) => sum + amount * quantity, 0);
}

/** A browser may send anything, so unknown products are left out. */
function cleaned(lines) {
  const cart = new Map();
  for (const [id, count] of lines) {
    const quantity = Math.min(Math.trunc(Number(count)), quantityMax);
    if (quantity >= 1 && products.some((product) => product.id === id)) cart.set(id, quantity);
  }
  return cart;
}
