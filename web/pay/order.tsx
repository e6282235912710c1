import { useState } from 'preact/hooks';
import { logoPath } from '#merchants/logo-path.ts';
import type { LineItem } from '#purchases/checkouts/checkout.ts';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import { ContactLink } from './footer.tsx';
import { Text, useI18n } from './i18n.tsx';

const itemsFirst = 5;

export function isPayable(page: PayPage): boolean {
  return ['open', 'paying', 'begun', 'challenge'].includes(page.status);
}

/** The merchant, the amount and the order. It is folded on a phone and open on a desktop. */
export function Order({ page }: { page: PayPage }) {
  const i18n = useI18n();
  const [open, setOpen] = useState(false);
  const [all, setAll] = useState(false);
  const items = page.line_items;
  const amount = i18n.money(page.amount);
  const merchant = <bdi>{page.merchant_name}</bdi>;
  const shown = all ? items : items.slice(0, itemsFirst);
  const rest = page.amount - items.reduce((sum, item) => sum + item.amount * item.quantity, 0);
  return (
    <header class="order">
      {page.merchant.logo !== null && (
        <img class="shop-logo" src={logoPath(page.merchant.logo)} alt="" />
      )}
      <p class="merchant">
        {isPayable(page) ? <Text of="pay_merchant" merchant={merchant} /> : merchant}
      </p>
      <p class={amount.length > 13 ? 'amount long' : 'amount'}>{amount}</p>
      <button
        type="button"
        class="order-toggle"
        aria-expanded={open}
        aria-controls="order"
        onClick={() => setOpen(!open)}
      >
        {i18n.text(open ? 'order_hide' : 'order_show')}
        {items.length > 0 && (
          <span class="count"> {i18n.count('items_one', 'items_other', items.length)}</span>
        )}
      </button>
      <div id="order" class={open ? 'order-detail open' : 'order-detail'}>
        {items.length > 0 && (
          <ul class="items">
            {shown.map((item, index) => (
              <Item key={index} item={item} />
            ))}
          </ul>
        )}
        {shown.length < items.length && (
          <button type="button" class="link" onClick={() => setAll(true)}>
            {i18n.text('items_all', { count: items.length })}
          </button>
        )}
        <dl class="totals">
          {items.length > 0 && rest !== 0 && Number.isSafeInteger(rest) && (
            <div>
              <dt>{i18n.text(rest > 0 ? 'other_charges' : 'discounts')}</dt>
              <dd>{signed(i18n, rest)}</dd>
            </div>
          )}
          <div class="total">
            <dt>{i18n.text('total')}</dt>
            <dd>{amount}</dd>
          </div>
          <div class="reference">
            <dt>{i18n.text('order')}</dt>
            <dd>
              <bdi>{page.client_reference_id}</bdi>
            </dd>
          </div>
        </dl>
        <Shop page={page} />
      </div>
    </header>
  );
}

/** An amount that may be a discount. */
const signed = (i18n: ReturnType<typeof useI18n>, cents: number) =>
  `${cents < 0 ? '−' : ''}${i18n.money(Math.abs(cents))}`;

/** The seller, and how to reach them. */
function Shop({ page }: { page: PayPage }) {
  const i18n = useI18n();
  const { contact, address, vat_number } = page.merchant;
  if ((contact ?? address ?? vat_number) === null) return null;
  return (
    <address class="shop">
      <bdi>{page.merchant_name}</bdi>
      {address !== null && <span class="lines">{address}</span>}
      {vat_number !== null && (
        <span>
          {i18n.text('shop_vat')} {vat_number}
        </span>
      )}
      {contact !== null && <ContactLink contact={contact} />}
    </address>
  );
}

function Item({ item }: { item: LineItem }) {
  const i18n = useI18n();
  const total = item.amount * item.quantity;
  return (
    <li>
      <span class="item">
        <bdi>{item.name}</bdi>
        {item.quantity > 1 && (
          <span class="each">
            {i18n.text('item_each', { count: item.quantity, amount: signed(i18n, item.amount) })}
          </span>
        )}
      </span>
      {Number.isSafeInteger(total) && <span class="price">{signed(i18n, total)}</span>}
    </li>
  );
}
