import { Button } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { DisputeDetails } from '#operating/operations/dispute.schema.ts';
import { longTime, money, sentence, shortTime, words } from '../format.ts';
import { SingleActionDialog } from '../parts/actions.tsx';
import { Card, Facts, Id, Notice, PageHead, Time } from '../parts/basics.tsx';
import { useDetails, Waiting } from '../parts/details.tsx';
import { acceptedOf, acceptTexts, endOf } from '../parts/dispute-texts.ts';
import { FileLink } from '../parts/file-link.tsx';
import { MerchantLink } from '../parts/merchants.tsx';
import { EvidenceFiles, SuppliedCard } from '../parts/supplied.tsx';
import { useCan } from '../session.tsx';
import { ActionLine } from './audit.tsx';
import { Deadline, DisputeStatus } from './disputes.tsx';

const back = { href: '/disputes', label: 'Disputes' };
type Verb = 'stage' | 'submit' | 'accept' | 'resume';

export default function DisputePage({ id }: { id: string }) {
  const can = useCan();
  const [acting, setActing] = useState<Verb | null>(null);
  const found = useDetails<DisputeDetails>('/api/disputes', id);
  const dispute = found.data;
  if (!dispute) return <Waiting title="Dispute" back={back} of={found} />;
  const show = (cents: number) => money(cents, dispute.currency, dispute.locale);
  const zone = dispute.time_zone;
  const mayAnswer = can('disputes.answer') && dispute.is_answerable;
  const isStaged = dispute.is_staged;
  const mayResume = can('disputes.answer') && dispute.closed_at !== null && dispute.is_pausing;
  return (
    <>
      <PageHead
        title={show(dispute.amount)}
        back={back}
        about={
          <span className="row-of">
            <DisputeStatus of={dispute} />
            <Link href={`/checkouts/${dispute.checkout_id}`}>{dispute.client_reference_id}</Link>
            <span>
              payment {dispute.instalment} of {dispute.number_of_payments}
            </span>
          </span>
        }
      >
        {mayAnswer && (
          <Button variant="default" onClick={() => setActing('accept')}>
            {acceptTexts(dispute, show).title}…
          </Button>
        )}
        {mayAnswer && (
          <Button variant={isStaged ? 'default' : 'filled'} onClick={() => setActing('stage')}>
            {isStaged ? 'Stage it again…' : 'Stage the evidence…'}
          </Button>
        )}
        {mayAnswer && isStaged && (
          <Button onClick={() => setActing('submit')}>Submit the evidence…</Button>
        )}
        {mayResume && <Button onClick={() => setActing('resume')}>Resume the plan…</Button>}
      </PageHead>
      <Standing of={dispute} show={show} />
      <div className="columns">
        <div className="stack">
          <SuppliedCard of={dispute} />
          <Card
            title={dispute.is_staged ? 'Evidence as staged' : 'Evidence'}
            aside={
              <FileLink
                path={`/api/disputes/${id}/evidence.html`}
                name={`evidence-${id}.html`}
                label="For printing"
              />
            }
          >
            <dl className="evidence">
              {dispute.evidence.map(({ name, text }) => (
                <div key={name}>
                  <dt>{name}</dt>
                  <dd>{text}</dd>
                </div>
              ))}
              <EvidenceFiles of={dispute} />
            </dl>
          </Card>
          {dispute.audit.length > 0 && (
            <Card title="Actions">
              <div className="stack tight">
                {dispute.audit.map((action) => (
                  <ActionLine key={action.id} of={action} />
                ))}
              </div>
            </Card>
          )}
        </div>
        <Card title="Dispute">
          <Facts
            rows={[
              ['Shopper', dispute.name ? `${dispute.name}, ${dispute.email}` : dispute.email],
              ['Merchant', <MerchantLink key="merchant" of={dispute} />],
              [
                'Reason',
                [sentence(words(dispute.reason)), dispute.network_reason_code]
                  .filter(Boolean)
                  .join(', '),
              ],
              ['Withdrawn', show(dispute.withdrawn)],
              ['Fee', show(dispute.fee)],
              ['Plan', dispute.is_pausing ? 'Paused' : 'Continues'],
              ['Opened', <Time key="opened" at={dispute.created_at} zone={zone} exact />],
              ['Answer by', dispute.due_by && <Time at={dispute.due_by} zone={zone} exact />],
              ['Staged', dispute.staged_at && <Time at={dispute.staged_at} zone={zone} exact />],
              [
                'Submitted',
                dispute.submitted_at && <Time at={dispute.submitted_at} zone={zone} exact />,
              ],
              ['Ended', dispute.closed_at && <Time at={dispute.closed_at} zone={zone} exact />],
              ['Gateway', dispute.gateway],
              [
                'Its reference',
                <span key="ref" className="mono">
                  {dispute.dispute_ref}
                </span>,
              ],
              ['Id', <Id key="id" id={dispute.id} />],
            ]}
          />
        </Card>
      </div>
      {acting && <Answer of={dispute} verb={acting} show={show} close={() => setActing(null)} />}
    </>
  );
}

/** The state of the dispute, and the next step. */
function Standing({ of: dispute, show }: { of: DisputeDetails; show: (cents: number) => string }) {
  const can = useCan();
  if (dispute.is_answerable && !can('disputes.answer')) {
    const maySupply = can('disputes.supply');
    return (
      <Notice kind="warn">
        {dispute.asked_until === null
          ? 'The bank decides on the evidence that it gets.'
          : `${maySupply ? 'Add what you know' : 'The merchant can add what it knows'} by ${shortTime(dispute.asked_until, dispute.time_zone)}. After that, the bank gets an answer without it.`}
        {maySupply && ' Facts and files that you add below become part of the answer.'}
      </Notice>
    );
  }
  if (dispute.is_answerable) {
    return (
      <Notice kind="warn">
        {!dispute.is_staged
          ? 'Look at the evidence below, then stage it. '
          : 'The evidence below is staged. Look at it once more, then submit it. '}
        {dispute.is_outdated &&
          'Our evidence has changed since then. Stage it again to see and send the new evidence. '}
        {dispute.due_by !== null && (
          <>
            {dispute.status === 'inquiry'
              ? `The bank wants an answer by ${longTime(dispute.due_by, dispute.time_zone)}: `
              : `Without an answer by ${longTime(dispute.due_by, dispute.time_zone)} the dispute is lost: `}
            <Deadline of={dispute} />.
          </>
        )}
      </Notice>
    );
  }
  if (dispute.status === 'under_review') {
    return (
      <Notice>
        The bank has the evidence. Until it decides, no payment of the plan is collected.
      </Notice>
    );
  }
  const end = endOf(dispute, show);
  if (end === null) return null;
  const isLost = dispute.status === 'lost';
  return (
    <Notice kind={isLost ? 'bad' : undefined}>
      {end}
      {isLost &&
        dispute.is_pausing &&
        can('disputes.answer') &&
        ' The plan is paused: resume it, or refund the rest on the checkout’s page.'}
    </Notice>
  );
}

type Texts = Record<'title' | 'what' | 'text', string> & {
  said: (answer: DisputeDetails) => string;
};

function Answer(props: {
  of: DisputeDetails;
  verb: Verb;
  show: (cents: number) => string;
  close: () => void;
}) {
  const { of: dispute, verb } = props;
  // The person saw these values when the dialog opened. In the meantime another person may stage
  // the evidence again, and an inquiry may become a dispute.
  const [{ evidence_hash, status }] = useState(dispute);
  const amount = props.show(dispute.amount);
  const actions: Record<Verb, Texts> = {
    stage: {
      title: 'Stage the evidence',
      what: `Stage the evidence for ${amount}`,
      said: () => 'The evidence is staged. The bank does not see it yet.',
      text: 'The evidence is stored with the dispute as it is now. The bank does not see it until you submit it.',
    },
    submit: {
      title: 'Submit the evidence',
      what: `Submit the evidence for ${amount}`,
      said: () => 'The bank has the evidence now.',
      text: 'The bank gets the evidence as this page shows it. It can be submitted only once and cannot be changed afterwards.',
    },
    accept: {
      ...acceptTexts({ status, amount: dispute.amount }, props.show),
      said: (answer) => acceptedOf(answer, props.show),
    },
    resume: {
      title: 'Resume the plan',
      what: `Resume the plan of ${dispute.client_reference_id}`,
      said: () => 'The rest of the plan is due again.',
      text: 'The rest of the plan is collected on its dates. To cancel it instead, refund it on the checkout’s page.',
    },
  };
  const { title, what, said, text } = actions[verb];
  const bodies: Partial<Record<Verb, object>> = {
    submit: { evidence_hash },
    accept: { was: { status } },
  };
  return (
    <SingleActionDialog
      title={title}
      what={what}
      path={`/api/disputes/${dispute.id}/${verb}`}
      body={bodies[verb]}
      said={said}
      danger={verb === 'accept'}
      close={props.close}
    >
      <p>{text}</p>
    </SingleActionDialog>
  );
}
