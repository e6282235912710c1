import { useState } from 'preact/hooks';
import type { LineItem } from '../../src/checkouts/checkout.ts';
import type { PayPage } from '../../src/payments/pay-page.ts';
import { money } from './words.ts';

const itemsFirst = 5;

/** The merchant, the amount and the order. Folded on a phone, open on a desktop. */
export function Order({ page }: { page: PayPage }) {
  const [open, setOpen] = useState(false);
  const [all, setAll] = useState(false);
  const items = page.line_items;
  const amount = money(page.amount, page);
  const isPayable = ['open', 'paying', 'challenge'].includes(page.status);
  const shown = all ? items : items.slice(0, itemsFirst);
  const rest = page.amount - items.reduce((sum, item) => sum + item.amount * item.quantity, 0);
  return (
    <header class="order">
      <p class="merchant">
        {isPayable && 'Pay '}
        <bdi>{page.merchant_name}</bdi>
      </p>
      <p class={amount.length > 13 ? 'amount long' : 'amount'}>{amount}</p>
      <button
        type="button"
        class="order-toggle"
        aria-expanded={open}
        aria-controls="order"
        onClick={() => setOpen(!open)}
      >
        {open ? 'Hide the order' : 'Show the order'}
        {items.length > 0 && (
          <span class="count">
            {' '}
            ({items.length} {items.length === 1 ? 'item' : 'items'})
          </span>
        )}
      </button>
      <div id="order" class={open ? 'order-detail open' : 'order-detail'}>
        {items.length > 0 && (
          <ul class="items">
            {shown.map((item, index) => (
              <Item key={index} item={item} page={page} />
            ))}
          </ul>
        )}
        {shown.length < items.length && (
          <button type="button" class="link" onClick={() => setAll(true)}>
            Show all {items.length} items
          </button>
        )}
        <dl class="totals">
          {items.length > 0 && rest !== 0 && Number.isSafeInteger(rest) && (
            <div>
              <dt>{rest > 0 ? 'Other charges' : 'Discounts'}</dt>
              <dd>
                {rest < 0 && '−'}
                {money(Math.abs(rest), page)}
              </dd>
            </div>
          )}
          <div class="total">
            <dt>Total</dt>
            <dd>{amount}</dd>
          </div>
          <div class="reference">
            <dt>Order</dt>
            <dd>
              <bdi>{page.client_reference_id}</bdi>
            </dd>
          </div>
        </dl>
      </div>
    </header>
  );
}

function Item({ item, page }: { item: LineItem; page: PayPage }) {
  const total = item.amount * item.quantity;
  return (
    <li>
      <span class="item">
        <bdi>{item.name}</bdi>
        {item.quantity > 1 && (
          <span class="each">
            {item.quantity} at {money(item.amount, page)}
          </span>
        )}
      </span>
      {Number.isSafeInteger(total) && <span class="price">{money(total, page)}</span>}
    </li>
  );
}
