import { Button, Checkbox, Textarea } from '@mantine/core';
import { useRef, useState } from 'react';
import { Link } from 'wouter';
import type { ConversationDetails } from '#operating/operations/conversation.schema.ts';
import { languageNames } from '#platform/shared/language.ts';
import { useAction } from '../parts/actions.tsx';
import { Card, Email, Facts, Notice, PageHead, Time } from '../parts/basics.tsx';
import { useDetails, Waiting } from '../parts/details.tsx';
import { MerchantLink } from '../parts/merchants.tsx';
import { useText } from '../parts/text.ts';
import { useCan } from '../session.tsx';
import { ConversationStatus } from './messages.tsx';

const back = { href: '/messages', label: 'Messages' };

export default function MessagePage({ id }: { id: string }) {
  const can = useCan();
  const found = useDetails<ConversationDetails>('/api/conversations', id);
  const conversation = found.data;
  if (!conversation) return <Waiting title="Message" back={back} of={found} />;
  const mayAnswer = can('messages.answer') && conversation.may_answer;
  return (
    <>
      <PageHead
        title={conversation.name ?? conversation.email}
        back={back}
        about={
          <span className="row-of">
            <ConversationStatus of={conversation} />
            <Link href={`/checkouts/${conversation.checkout_id}`}>
              {conversation.client_reference_id}
            </Link>
          </span>
        }
      >
        {mayAnswer && conversation.status !== 'solved' && <Solve of={conversation} />}
      </PageHead>
      <div className="columns">
        <Card title="Messages">
          <div className="stack">
            {conversation.is_cut && (
              <p className="quiet">Only the newest {conversation.entries.length} are shown.</p>
            )}
            <Thread of={conversation} />
            {mayAnswer && <AnswerForm of={conversation} />}
          </div>
        </Card>
        <Card title="Shopper">
          <Facts
            rows={[
              ['Name', conversation.name],
              ['E-mail', <Email key="email" of={conversation.email} />],
              ['Language', languageNames[conversation.language]],
              [
                'Order',
                <Link key="order" href={`/checkouts/${conversation.checkout_id}`}>
                  {conversation.client_reference_id}
                </Link>,
              ],
              ['Merchant', <MerchantLink key="merchant" of={conversation} />],
            ]}
          />
        </Card>
      </div>
    </>
  );
}

/** The messages, in the order in which they were written. */
function Thread({ of: conversation }: { of: ConversationDetails }) {
  const { entries, time_zone, name, email } = conversation;
  return (
    <ol className="thread">
      {entries.map((entry) => (
        <li key={entry.id} className={entry.author === 'person' ? 'own' : ''}>
          <div className="when">
            <strong>{entry.name ?? name ?? email}</strong>{' '}
            <Time at={entry.at} zone={time_zone} exact />
          </div>
          <div className="break said" dir="auto">
            {entry.text}
          </div>
        </li>
      ))}
    </ol>
  );
}

function AnswerForm({ of: conversation }: { of: ConversationDetails }) {
  const { checkout_id, moved_at, email, language, merchant_name } = conversation;
  const [text, textField, setText] = useText('', 'answer');
  const [solves, setSolves] = useState(true);
  // Sending the same text again repeats the same answer. Another text is a new answer.
  const sent = useRef({ request_id: '', text: '' });
  // The page keeps refreshing the messages. A person who is writing must notice a newer one.
  const [begun_at, setBegunAt] = useState(moved_at);
  if (text === '' && begun_at !== moved_at) setBegunAt(moved_at);
  const { run, busy, problem } = useAction();
  const isOvertaken = begun_at !== moved_at && !busy;
  const what = solves ? 'Answer and solve' : 'Answer';
  return (
    <form
      className="stack tight"
      onSubmit={(event) => {
        event.preventDefault();
        const wanted = text.trim();
        if (sent.current.text !== wanted) {
          sent.current = { request_id: crypto.randomUUID(), text: wanted };
        }
        void run({
          path: `/api/conversations/${checkout_id}/answer`,
          body: { ...sent.current, seen_at: moved_at, solves },
          what,
          said: () => `The answer is being sent to ${email}.`,
        }).then((answer) => {
          if (answer === null) return;
          setText('');
          setSolves(true);
          sent.current = { request_id: '', text: '' };
        });
      }}
    >
      <Textarea
        label={`Answer as ${merchant_name}`}
        description={`It is sent to ${email} by e-mail and appears on the plan page. Write it in ${languageNames[language]}.`}
        autosize
        minRows={4}
        maxLength={4000}
        {...textField}
      />
      <Checkbox
        label="This solves it"
        checked={solves}
        onChange={(event) => setSolves(event.currentTarget.checked)}
      />
      {isOvertaken && (
        <Notice kind="warn">
          There are newer messages above. Read them before you send this answer.
        </Notice>
      )}
      {problem !== null && <Notice kind="bad">{problem}</Notice>}
      <span>
        <Button type="submit" loading={busy} disabled={text.trim() === ''}>
          {what}
        </Button>
      </span>
    </form>
  );
}

function Solve({ of: conversation }: { of: ConversationDetails }) {
  const { run, busy, problem } = useAction();
  const what = 'Mark as solved';
  return (
    <>
      {problem !== null && <Notice kind="bad">{problem}</Notice>}
      <Button
        variant="default"
        loading={busy}
        onClick={() =>
          void run({
            path: `/api/conversations/${conversation.checkout_id}/solve`,
            body: { seen_at: conversation.moved_at },
            what,
            said: () => 'Marked as solved. The shopper gets no e-mail.',
          })
        }
      >
        {what}
      </Button>
    </>
  );
}
