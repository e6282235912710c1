import { useEffect, useRef, useState } from 'preact/hooks';
import { renderedOnce } from './render-once.tsx';

// The sandbox's ribbon, for developers and therefore only in English. The page shows it only if the
// server is in test mode, never in production.

const cards: [number: string, does: string][] = [
  ['4242 4242 4242 4242', 'approved'],
  ['4000 0025 0000 3155', 'the bank asks first; later payments work'],
  ['4000 0000 0000 9995', 'declined: not enough funds'],
  ['4000 0000 0000 0002', 'declined, no reason given'],
  ['4000 0000 0000 9987', 'declined, not to be retried: lost card'],
  ['4000 0000 0000 0069', 'declined: expired'],
  ['4000 0000 0000 0127', 'declined: wrong security code'],
  ['4000 0084 0000 1629', 'the bank asks first, then declines'],
  ['4000 0000 0077 7005', 'approved; the later payments are declined'],
];

export const TestRibbon = renderedOnce(AnyRibbon, ({ mailboxUrl }) => String(mailboxUrl));

function AnyRibbon({ mailboxUrl }: { mailboxUrl: string | null }) {
  const [copied, setCopied] = useState<string | null>(null);
  // The cards are rendered only while the list is open, so that searching the page for "declined"
  // does not find them.
  const [open, setOpen] = useState(false);
  const details = useRef<HTMLDetailsElement>(null);
  const follow = () => setOpen(details.current?.open ?? false);
  useEffect(follow, []);

  async function copy(number: string) {
    try {
      await navigator.clipboard.writeText(number.replaceAll(' ', ''));
      setCopied(number);
    } catch {
      // Without a clipboard the shopper can still read the number.
    }
  }

  return (
    <aside class="ribbon" aria-label="Test mode" lang="en">
      <details ref={details} onToggle={follow}>
        <summary>
          <span>
            <strong>Test mode</strong>: no real money moves.
          </span>
          <span class="ribbon-more">Test cards</span>
        </summary>
        {open && (
          <div class="test-cards">
            <p>Any expiry date in the future and any security code will do.</p>
            <ul>
              {cards.map(([number, does]) => (
                <li key={number}>
                  <span class="test-card">
                    <code>{number}</code> <span>{does}</span>
                  </span>
                  <button type="button" onClick={() => copy(number)}>
                    {copied === number ? 'Copied' : 'Copy'}
                    <span class="unseen"> {number}</span>
                  </button>
                </li>
              ))}
            </ul>
            <p class="unseen" role="status">
              {copied === null ? '' : 'The card number is copied.'}
            </p>
          </div>
        )}
      </details>
      {mailboxUrl !== null && <MailboxLink url={mailboxUrl} text="Mailbox" />}
    </aside>
  );
}

/** The ribbon of a page that takes no card. */
export function PlainRibbon() {
  return (
    <aside class="ribbon" aria-label="Test mode" lang="en">
      <p class="link-ribbon">
        <strong>Test mode</strong>: no real money moves.
      </p>
    </aside>
  );
}

/** Where a sandbox keeps its messages, for developers. */
export function MailboxHint({ url }: { url: string | null }) {
  if (url === null) return null;
  return (
    <p class="small" lang="en">
      <strong>Test mode</strong>: no e-mail is sent. The message is in the{' '}
      <MailboxLink url={url} text="sandbox’s mailbox" />.
    </p>
  );
}

function MailboxLink({ url, text }: { url: string; text: string }) {
  return (
    <a class="ribbon-more" href={url} target="_blank" rel="noopener noreferrer">
      {text}
    </a>
  );
}
