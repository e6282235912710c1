import { Button, TextInput } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { PayoutRow } from '#operating/operations/payout.schema.ts';
import { plural } from '../format.ts';
import { ActionDialog } from './actions.tsx';
import { Notice } from './basics.tsx';
import { SelectedBar, sumOf, useBulkAction } from './selected.tsx';
import { useText } from './text.ts';

type Props = { rows: PayoutRow[]; clear: () => void; keep: (ids: string[]) => void };

const idsOf = (rows: PayoutRow[]) => rows.map(({ id }) => id);

/** The payouts, each with the account that the list shows. */
const approvalsOf = (rows: PayoutRow[]) =>
  rows.map(({ id, account }) => `${id}:${account?.number ?? 'none'}`);

/** Payouts that a person should look at before approving them. */
const withoutAccount = (rows: PayoutRow[]) => rows.filter(({ account }) => account === null);
const disputed = (rows: PayoutRow[]) => rows.filter(({ is_disputed }) => is_disputed);

/** Approves the selected drafts. If one of them looks wrong, the person is asked first. */
export function SelectedDrafts({ rows, clear, keep }: Props) {
  const { begin, ...bulk } = useBulkAction(clear);
  const [asking, setAsking] = useState(false);
  const what = `Approve ${plural(rows.length, 'payout')}${sumOf(rows)}`;
  const doubtful = new Set(idsOf([...withoutAccount(rows), ...disputed(rows)]));
  const approve = () => begin('/api/payouts/approve', { ids: approvalsOf(rows) }, what);
  return (
    <>
      <SelectedBar
        label="Selected payouts"
        what={what}
        clear={clear}
        {...bulk}
        onAction={() => (doubtful.size > 0 ? setAsking(true) : approve())}
      >
        <strong>{plural(rows.length, 'payout')}</strong> selected.{' '}
        {doubtful.size > 0
          ? `Look at ${plural(doubtful.size, 'payout')} first.`
          : 'Two people approve each.'}
      </SelectedBar>
      {asking && (
        <ActionDialog
          title="Look at these first"
          size="lg"
          opened
          close={() => setAsking(false)}
          what={what}
          busy={bulk.busy}
          problem={bulk.problem}
          onAction={() => {
            setAsking(false);
            approve();
          }}
          before={
            <Button
              variant="light"
              onClick={() => {
                keep(idsOf(rows).filter((id) => !doubtful.has(id)));
                setAsking(false);
              }}
            >
              Leave them out
            </Button>
          }
        >
          <Doubts of={rows} />
        </ActionDialog>
      )}
    </>
  );
}

/**
 * Why a person should look at payouts before approving them. `own` is set on a payout's own page,
 * which needs no link to itself.
 */
export function Doubts({ of: rows, own = false }: { of: PayoutRow[]; own?: boolean }) {
  const kinds = [
    {
      rows: withoutAccount(rows),
      text: 'Two people have to approve again once the merchant has a confirmed bank account. None is confirmed now',
      next: ({ merchant_id, merchant_name }: PayoutRow) => (
        <Link href={`/merchants/${merchant_id}`}>{merchant_name}</Link>
      ),
    },
    {
      rows: disputed(rows),
      text: 'A shopper disputes an order of this payout',
      next: ({ merchant_id }: PayoutRow) => (
        <Link href={`/disputes?merchant=${merchant_id}`}>the open disputes</Link>
      ),
    },
  ];
  return kinds
    .filter((kind) => kind.rows.length > 0)
    .map((kind) => (
      <Notice key={kind.text} kind="warn">
        {kind.text}:{' '}
        {kind.rows.map((row, index) => (
          <span key={row.id}>
            {index > 0 && ', '}
            {own ? (
              kind.next(row)
            ) : (
              <Link href={`/payouts/${row.id}`}>
                {row.merchant_name}, {row.reference}
              </Link>
            )}
          </span>
        ))}
        .
      </Notice>
    ));
}

/** Records the selected payouts as paid, with one bank reference. */
export function SelectedAtBank({ rows, clear }: Omit<Props, 'keep'>) {
  const { begin, ...bulk } = useBulkAction(clear);
  const [opened, setOpened] = useState(false);
  const [reference, referenceField] = useText('');
  const what = `Record ${plural(rows.length, 'payout')} as paid${sumOf(rows)}`;
  const bank_reference = reference.trim();
  return (
    <>
      <SelectedBar
        label="Selected payouts"
        what="The bank has paid these…"
        clear={clear}
        {...bulk}
        onAction={() => setOpened(true)}
      >
        <strong>{plural(rows.length, 'payout')}</strong> selected{sumOf(rows)}.
      </SelectedBar>
      {opened && (
        <ActionDialog
          title="The bank has paid"
          opened
          close={() => setOpened(false)}
          what={what}
          disabled={bank_reference === ''}
          busy={bulk.busy}
          problem={bulk.problem}
          onAction={() => begin('/api/payouts/paid', { ids: idsOf(rows), bank_reference }, what)}
        >
          <TextInput
            label="The bank’s reference"
            description="As it appears on the bank’s statement. Each of these payouts gets it."
            maxLength={200}
            data-autofocus
            {...referenceField}
          />
        </ActionDialog>
      )}
    </>
  );
}
