import { money } from '../format.ts';

const does = {
  cancel: 'Not collected yet: it is cancelled',
  hold: 'Held: less is captured',
  card: 'Collected: it goes back to the card',
} as const;

/** Shows the payments that a refund is taken from. */
export function RefundParts(props: {
  parts: { instalment: number; kind: keyof typeof does; amount: number }[];
  currency: string;
  locale: string;
}) {
  const show = (cents: number) => money(cents, props.currency, props.locale);
  const total = props.parts.reduce((sum, { amount }) => sum + amount, 0);
  const toCard = props.parts
    .filter(({ kind }) => kind === 'card')
    .reduce((sum, { amount }) => sum + amount, 0);
  return (
    <table className="parts">
      <caption className="visually-hidden">What the refund is taken from</caption>
      <tbody>
        {props.parts.map(({ instalment, kind, amount }) => (
          <tr key={`${instalment} ${kind}`}>
            <th scope="row">
              Payment {instalment}
              <br />
              <span className="quiet small">{does[kind]}</span>
            </th>
            <td>{show(amount)}</td>
          </tr>
        ))}
      </tbody>
      <tfoot>
        <tr>
          <th scope="row">
            Together
            <br />
            <span className="quiet small">
              {toCard === 0
                ? 'Nothing goes back to the card'
                : `${show(toCard)} of it goes back to the card`}
            </span>
          </th>
          <td>{show(total)}</td>
        </tr>
      </tfoot>
    </table>
  );
}
