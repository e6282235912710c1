import { Button, Checkbox } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { AlertMails as Choices, Person } from '#operating/operations/people.schema.ts';
import { get } from '../api.ts';
import { useCan, useSession, useShop } from '../session.tsx';
import { useAction } from './actions.tsx';
import { Notice } from './basics.tsx';
import { Unread } from './states.tsx';

const labels: Record<Choices['data'][number]['kind'], string> = {
  callbacks_failing: 'Callbacks fail',
  dispute_opened: 'A dispute is opened',
  key_ends: 'A key or secret ends within a day',
  payout_paid: 'A payout is paid',
  payout_returned: 'The bank returns a payout',
  link_paid: 'A payment link is paid',
  orders_week: 'A week ends: link to its orders',
  orders_month: 'A month ends: link to its orders',
  refunds_week: 'A week ends: link to its refunds',
  refunds_month: 'A month ends: link to its refunds',
};

/** The events of the shop that a person gets mail about. */
export function AlertMails({ of: person }: { of: Person }) {
  const { sends_mail } = useSession();
  const shop = useShop();
  const [only] = person.merchant_ids ?? [];
  const merchant = shop ?? (person.merchant_ids?.length === 1 ? only : undefined);
  const path = `/api/people/${person.id}/alert-mails`;
  const found = useQuery({
    enabled: sends_mail && merchant !== undefined,
    queryKey: [path, merchant],
    queryFn: ({ signal }) => get<Choices>(path, { merchant: merchant ?? '' }, signal),
  });
  if (!sends_mail || merchant === undefined || found.data?.data.length === 0) return null;
  return (
    <section className="stack tight">
      <h3>Gets an e-mail when</h3>
      {found.data ? (
        <Chooser key={JSON.stringify(found.data)} of={found.data} {...{ person, merchant, path }} />
      ) : (
        <Unread of={found} lines={3} />
      )}
    </section>
  );
}

function Chooser(props: { of: Choices; person: Person; merchant: string; path: string }) {
  const { of, person, merchant, path } = props;
  const can = useCan();
  const { run, busy, problem } = useAction();
  const before = of.data.filter(({ is_wanted }) => is_wanted).map(({ kind }) => kind as string);
  const [kinds, setKinds] = useState(before);
  const isChanged = of.data.some(({ kind, is_wanted }) => kinds.includes(kind) !== is_wanted);
  const what = `Change the e-mails of ${person.name}`;
  return (
    <div className="stack tight">
      <Checkbox.Group value={kinds} onChange={setKinds} aria-label="Gets an e-mail when">
        <div className="stack tight">
          {of.data.map(({ kind }) => (
            <Checkbox
              key={kind}
              value={kind}
              label={labels[kind]}
              disabled={!can('people.manage') || busy}
            />
          ))}
        </div>
      </Checkbox.Group>
      {problem !== null && <Notice kind="bad">{problem}</Notice>}
      {isChanged && (
        <div>
          <Button
            size="compact-sm"
            loading={busy}
            onClick={() =>
              void run({
                path,
                body: { merchant_id: merchant, kinds },
                what,
                said: () => `The e-mails of ${person.name} were changed.`,
              })
            }
          >
            {what}
          </Button>
        </div>
      )}
    </div>
  );
}
