import { Button, TextInput } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { PayoutDetails } from '#operating/operations/payout.schema.ts';
import { count, longDate, money, plural } from '../format.ts';
import { SingleActionDialog, useAction } from '../parts/actions.tsx';
import { BankFileButtons } from '../parts/bank-file.tsx';
import { AccountEnd, Card, Facts, Id, Notice, PageHead, Table, Time } from '../parts/basics.tsx';
import { useDetails, Waiting } from '../parts/details.tsx';
import { FileLink } from '../parts/file-link.tsx';
import { MerchantLink } from '../parts/merchants.tsx';
import { Doubts } from '../parts/selected-payouts.tsx';
import { useText } from '../parts/text.ts';
import { useCan, useIsStaff } from '../session.tsx';
import { ActionLine } from './audit.tsx';
import { mustApproveAgain, PayoutStatus } from './payouts.tsx';

/** How the bank handled the payout, as a person states it. */
type Answer = 'paid' | 'returned' | 'confirm';

const back = { href: '/payouts', label: 'Payouts' };

export default function PayoutPage({ id }: { id: string }) {
  const can = useCan();
  const [answering, setAnswering] = useState<Answer | null>(null);
  const found = useDetails<PayoutDetails>('/api/payouts', id);
  const { run, busy, problem } = useAction();
  const payout = found.data;
  if (!payout) return <Waiting title="Payout" back={back} of={found} />;
  const show = (cents: number) => money(cents, payout.currency, payout.locale);
  const amount = show(payout.amount);
  const isSecond = payout.approvals === 1;
  const approve = isSecond ? `Approve ${amount} as second approver` : `Approve ${amount}`;
  const mayApprove =
    can('payouts.approve') && (payout.status === 'draft' || mustApproveAgain(payout));
  const mustCompare = payout.compare_since !== null;
  const mayBePaid = mustCompare && payout.status === 'approved';
  const isOut = payout.status === 'exported' || payout.status === 'paid';
  return (
    <>
      <PageHead
        title={amount}
        back={back}
        about={
          <span className="row-of">
            <PayoutStatus of={payout} />
            <MerchantLink of={payout} />
            <span className="mono">{payout.reference}</span>
          </span>
        }
      >
        {can('payouts.settle') && isOut && (
          <Button variant="default" onClick={() => setAnswering('returned')}>
            The bank returned it…
          </Button>
        )}
        {can('payouts.settle') && mustCompare && (
          <Button variant="default" onClick={() => setAnswering('confirm')}>
            The bank has not paid…
          </Button>
        )}
        {can('payouts.settle') && (payout.status === 'exported' || mayBePaid) && (
          <Button onClick={() => setAnswering('paid')}>The bank has paid…</Button>
        )}
        {mayApprove && (
          <Button
            loading={busy}
            disabled={!payout.may_approve}
            onClick={() =>
              void run<PayoutDetails>({
                path: `/api/payouts/${id}/approve`,
                body: { account: payout.account?.number ?? null },
                what: approve,
                said: ({ status, compare_since }) =>
                  status === 'draft'
                    ? `Your approval of ${amount} is recorded. It now needs a second approval.`
                    : compare_since === null
                      ? `${amount} is approved. It goes into the next bank run.`
                      : `${amount} is approved. It waits until a person confirms that the bank has not paid it.`,
              })
            }
          >
            {approve}
          </Button>
        )}
      </PageHead>
      {problem !== null && <Notice kind="bad">{problem}</Notice>}
      <Notices of={payout} />
      <div className="columns">
        <div className="stack">
          <Card
            title="Lines"
            bare
            aside={
              <span className="row-of">
                <FileLink
                  path={`/api/payouts/${id}/statement.csv`}
                  name={`${payout.reference}.csv`}
                  label="Statement, CSV"
                />
                {payout.has_pdf && (
                  <FileLink
                    path={`/api/payouts/${id}/statement.pdf`}
                    name={`${payout.reference}.pdf`}
                    label="PDF"
                  />
                )}
                {payout.is_printable ? (
                  <a
                    className="link row-of"
                    href={`/api/payouts/${id}/statement.html`}
                    target="_blank"
                    rel="noopener"
                  >
                    Print
                  </a>
                ) : (
                  <span className="quiet">too long to print</span>
                )}
              </span>
            }
          >
            <Lines of={payout} show={show} />
          </Card>
          {payout.audit.length > 0 && (
            <Card title="Actions">
              <div className="stack tight">
                {payout.audit.map((action) => (
                  <ActionLine key={action.id} of={action} />
                ))}
              </div>
            </Card>
          )}
        </div>
        <PayoutCard of={payout} show={show} maySave={can('payouts.settle')} />
      </div>
      {answering && <BankAnswer of={payout} kind={answering} close={() => setAnswering(null)} />}
    </>
  );
}

function Notices({ of: payout }: { of: PayoutDetails }) {
  const can = useCan();
  const isStaff = useIsStaff();
  // Another person may have the same name, so the e-mail address is shown beside it.
  const findActor = (wanted: string) => {
    const by = payout.audit.findLast(({ action }) => action === wanted);
    return by && (by.name === by.operator ? by.name : `${by.name} (${by.operator})`);
  };
  const maySecond = can('payouts.approve') && payout.may_approve;
  // A shop is not told how far the staff's approval has progressed, nor what the staff compare.
  const ofStaff = isStaff && (
    <>
      {payout.compare_since !== null && (
        <Notice kind="warn">
          The database was restored from a backup. Compare this payout with the bank’s statement: it
          may have been paid. It is not exported until a person confirms that the bank has not paid
          it, and two people approve it after that.
          {payout.status === 'draft' &&
            ' If the bank has paid it, approve it first, then record it as paid.'}
        </Notice>
      )}
      {payout.status === 'draft' && <Doubts of={[payout]} own />}
      {mustApproveAgain(payout) && (
        <Notice kind="warn">
          {payout.approved_account
            ? `It was approved for the account that ends in ${payout.approved_account.last4}.`
            : 'It was approved before the merchant had an account.'}{' '}
          The merchant is now paid to the account that ends in {payout.account?.last4}. Two people
          have to approve it again.
        </Notice>
      )}
      {payout.status === 'draft' && payout.approvals === 1 && (
        <Notice kind={maySecond ? undefined : 'warn'}>
          {findActor('payouts approve') ?? 'A person'} approved it first.{' '}
          {maySecond
            ? 'Your approval sends it to the next bank run.'
            : 'Another person has to approve it too.'}
        </Notice>
      )}
    </>
  );
  return (
    <>
      {ofStaff}
      {payout.return_noted_by !== null && payout.status !== 'returned' && (
        <Notice kind="warn">
          {findActor('payouts returned') ?? payout.return_noted_by} recorded that the bank returned
          it: {payout.return_reason}. The amount is owed again once another person confirms that.
        </Notice>
      )}
      {payout.status === 'returned' && (
        <Notice kind="bad">
          The bank returned it: {payout.return_reason}. The amount is owed again and is a line of
          the merchant’s next payout.
        </Notice>
      )}
    </>
  );
}

function PayoutCard(props: {
  of: PayoutDetails;
  show: (cents: number) => string;
  maySave: boolean;
}) {
  const { of: payout, show, maySave } = props;
  const approved = payout.approved_account;
  // A payout that the bank had paid before a restore has no file: its own id stands for the export.
  const bankRun = payout.export_id === payout.id ? null : payout.export_id;
  const approvals = (
    <>
      {payout.approvals} of 2
      {approved && payout.approvals !== 0 && (
        <>
          , for <AccountEnd of={approved} />
        </>
      )}
    </>
  );
  return (
    <Card title="Payout">
      <Facts
        rows={[
          ['Business day', longDate(payout.business_on)],
          ['Gross', show(payout.totals.gross)],
          ['Fees', show(payout.totals.fee)],
          ['VAT on fees', show(payout.totals.vat)],
          ['Net', <strong key="net">{show(payout.totals.net)}</strong>],
          ['Approvals', payout.approvals !== null && approvals],
          [
            'Account in use',
            payout.account ? <AccountEnd of={payout.account} /> : 'none confirmed',
          ],
          ['Made', <Time key="made" at={payout.created_at} zone={payout.time_zone} exact />],
          [
            'Exported',
            payout.exported_at && <Time at={payout.exported_at} zone={payout.time_zone} exact />,
          ],
          ['Bank run', bankRun && maySave && <BankFileButtons of={bankRun} />],
          ['Paid', payout.paid_at && <Time at={payout.paid_at} zone={payout.time_zone} exact />],
          ['Bank reference', payout.bank_reference],
          [
            'Returned',
            payout.returned_at && <Time at={payout.returned_at} zone={payout.time_zone} exact />,
          ],
          ['Return recorded by', payout.return_noted_by],
          ['Id', <Id key="id" id={payout.id} />],
        ]}
      />
    </Card>
  );
}

function Lines({ of: payout, show }: { of: PayoutDetails; show: (cents: number) => string }) {
  return (
    <>
      <Table
        label="Lines"
        columns={[
          'What',
          'Order',
          { right: 'Gross', wide: true },
          { right: 'Fee', wide: true },
          { right: 'VAT', wide: true },
          { right: 'Net' },
        ]}
        foot={
          <tr>
            <th scope="row" colSpan={2}>
              {plural(payout.line_count, 'line')}
            </th>
            <td className="right wide">{show(payout.totals.gross)}</td>
            <td className="right wide">{show(payout.totals.fee)}</td>
            <td className="right wide">{show(payout.totals.vat)}</td>
            <td className="right">
              <strong>{show(payout.totals.net)}</strong>
            </td>
          </tr>
        }
      >
        {payout.lines.map((line) => (
          <tr key={line.line}>
            <td>{line.name}</td>
            <td>
              {line.checkout_id ? (
                <Link href={`/checkouts/${line.checkout_id}`}>{line.client_reference_id}</Link>
              ) : (
                <span className="quiet">–</span>
              )}
            </td>
            <td className="right wide">{show(line.gross)}</td>
            <td className="right wide">{show(line.fee)}</td>
            <td className="right wide">{show(line.vat)}</td>
            <td className="right">{show(line.net)}</td>
          </tr>
        ))}
      </Table>
      {payout.line_count > payout.lines.length && (
        <p className="quiet card-body">
          The first {count(payout.lines.length)} of {plural(payout.line_count, 'line')}. The
          statement has all of them.
        </p>
      )}
    </>
  );
}

type BankTexts = Record<'title' | 'what' | 'label' | 'description', string> & {
  said: (answer: PayoutDetails) => string;
};

const textsOf = (amount: string, isFirst: boolean): Record<Answer, BankTexts> => ({
  paid: {
    title: 'The bank has paid',
    what: `Record ${amount} as paid`,
    said: () => `${amount} is recorded as paid.`,
    label: 'The bank’s reference',
    description: 'As it appears on the bank’s statement.',
  },
  returned: {
    title: 'The bank returned it',
    what: `Record ${amount} as returned`,
    said: ({ status }) =>
      status === 'returned'
        ? `The return of ${amount} is recorded. The amount is owed again.`
        : `The return of ${amount} is recorded. The amount is owed again once two people have recorded it.`,
    label: 'Why the bank returned it',
    description: isFirst
      ? 'Once another person has also recorded the return, the amount is owed to the merchant again and is part of its next payout.'
      : 'Yours is the second record of it: the amount is then owed to the merchant again and is part of its next payout.',
  },
  confirm: {
    title: 'The bank has not paid',
    what: `Confirm: ${amount} not paid`,
    said: () => `${amount} goes into the next bank run once it is approved.`,
    label: 'How you know',
    description: 'Which statement you compared it with. The reason stays with the payout.',
  },
});

/** Asks how the bank handled a payout. */
function BankAnswer(props: { of: PayoutDetails; kind: Answer; close: () => void }) {
  const { of: payout, kind } = props;
  const [text, textField] = useText('', kind);
  const amount = money(payout.amount, payout.currency, payout.locale);
  // The person read this when the dialog opened.
  const [isFirst] = useState(payout.return_noted_by === null);
  const { title, what, said, label, description } = textsOf(amount, isFirst)[kind];
  const value = text.trim();
  const bodies = {
    paid: { bank_reference: value },
    returned: { reason: value, as_first: isFirst },
    confirm: { reason: value },
  };
  return (
    <SingleActionDialog
      title={title}
      what={what}
      path={`/api/payouts/${payout.id}/${kind}`}
      body={bodies[kind]}
      said={said}
      danger={kind === 'returned'}
      disabled={value === ''}
      close={props.close}
    >
      <p>
        {payout.merchant_name}, {payout.reference}, {amount}.
      </p>
      <TextInput
        label={label}
        description={description}
        data-autofocus
        maxLength={200}
        {...textField}
      />
    </SingleActionDialog>
  );
}
