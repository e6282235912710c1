import { Button, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { MerchantDetails } from '#operating/operations/merchant.schema.ts';
import type { Account, Payee } from '#operating/operations/payee.schema.ts';
import { useCan, useSession } from '../session.tsx';
import { SingleActionDialog } from './actions.tsx';
import { AccountEnd, Card, Facts, Notice, Time } from './basics.tsx';
import { useText } from './text.ts';

type Dialog = 'propose' | 'confirm' | 'statements';
type Props = { of: MerchantDetails; payee: Payee; close: () => void };

/** The account that the merchant is paid to: one person proposes it, and another confirms it. */
export function PayeeCard({ of: merchant, payee }: Omit<Props, 'close'>) {
  const can = useCan();
  const [opened, setOpened] = useState<Dialog | null>(null);
  const { account, proposed } = payee;
  const close = () => setOpened(null);
  const dialog = { of: merchant, payee, close };
  return (
    <Card
      title="Bank account"
      aside={
        can('bank.propose') && (
          <Button size="xs" variant="default" onClick={() => setOpened('propose')}>
            {account ? 'Propose another…' : 'Propose an account…'}
          </Button>
        )
      }
    >
      <div className="stack tight">
        {account ? (
          <AccountFacts of={account} zone={merchant.time_zone} />
        ) : (
          <Notice kind="warn">Without a confirmed account its payouts are not exported.</Notice>
        )}
        {proposed && (
          <div className="proposal">
            <h3>Proposed, not in use yet</h3>
            <AccountFacts of={proposed} zone={merchant.time_zone} />
            {!can('bank.confirm') ? (
              <p className="quiet small">
                The payment service asks you for the whole number by telephone, and confirms it.
              </p>
            ) : payee.is_own_proposal ? (
              <p className="quiet small">You proposed it. Another person has to confirm it.</p>
            ) : (
              <span>
                <Button size="xs" onClick={() => setOpened('confirm')}>
                  Confirm the account…
                </Button>
              </span>
            )}
          </div>
        )}
        <Facts
          rows={[
            [
              'Statements to',
              <span key="to" className="row-of">
                <span className="break">
                  {payee.statement_email ?? 'No address: no statements are sent'}
                </span>
                {can('merchants.change') && (
                  <button
                    type="button"
                    className="link"
                    aria-label="Change where statements go"
                    onClick={() => setOpened('statements')}
                  >
                    Change
                  </button>
                )}
              </span>,
            ],
          ]}
        />
      </div>
      {opened === 'propose' && <Propose {...dialog} />}
      {opened === 'confirm' && proposed && <Confirm {...dialog} proposed={proposed} />}
      {opened === 'statements' && <Statements {...dialog} />}
    </Card>
  );
}

function AccountFacts({ of: account, zone }: { of: Account; zone: string }) {
  return (
    <Facts
      rows={[
        ['Account', <AccountEnd key="account" of={account} />],
        ['Holder', account.holder],
        ['Bank', `${account.bank}, branch ${account.branch_code}`],
        [
          'Proposed',
          <span key="proposed">
            <Time at={account.created_at} zone={zone} exact /> by {account.proposed_by}
          </span>,
        ],
        [
          'Confirmed',
          account.confirmed_at && (
            <span>
              <Time at={account.confirmed_at} zone={zone} exact /> by {account.confirmed_by}
            </span>
          ),
        ],
      ]}
    />
  );
}

function Propose({ of: merchant, payee, close }: Props) {
  const [holder, holderField] = useText('');
  const [bank, bankField] = useText('');
  const [branch, branchField] = useText('');
  const [account, accountField] = useText('');
  // The proposal that the person read. A newer one must not be replaced unseen.
  const [replaced] = useState(payee.proposed);
  const isStaff = useSession().scope === 'all';
  const digits = account.replaceAll(/\s/g, '');
  const confirmer = isStaff ? 'another person' : 'the payment service';
  const isGood = [holder, bank, branch].every((text) => text.trim() !== '') && digits.length >= 5;
  return (
    <SingleActionDialog
      title={`Bank account of ${merchant.name}`}
      what={isGood ? `Propose the account … ${digits.slice(-4)}` : 'Propose the account'}
      path={`/api/merchants/${merchant.id}/bank-accounts`}
      body={{
        holder: holder.trim(),
        bank: bank.trim(),
        branch_code: branch.trim(),
        account_number: digits,
        ...(replaced && { replaces: replaced.number }),
      }}
      said={() =>
        isStaff
          ? 'The account is proposed. Another person has to confirm it.'
          : 'The account is proposed. The payment service calls you and confirms it.'
      }
      disabled={!isGood}
      close={close}
    >
      {replaced && (
        <Notice kind="warn">
          This replaces the proposal of {replaced.proposed_by}, account … {replaced.last4}.
        </Notice>
      )}
      <TextInput label="Account holder" maxLength={100} data-autofocus {...holderField} />
      <TextInput label="Bank" maxLength={100} {...bankField} />
      <TextInput label="Branch code" inputMode="numeric" maxLength={20} {...branchField} />
      <TextInput
        label="Account number"
        description="It is encrypted. Only its last four digits are shown from now on."
        inputMode="numeric"
        autoComplete="off"
        maxLength={30}
        {...accountField}
      />
      <p className="quiet">
        {payee.account
          ? `Payouts go to account … ${payee.account.last4} until ${confirmer} has confirmed the new one.`
          : `Payouts go there once ${confirmer} has confirmed it.`}
      </p>
    </SingleActionDialog>
  );
}

function Confirm(props: Props & { proposed: Account }) {
  const { of: merchant, close } = props;
  // The proposal that the person read. A newer one must not be confirmed instead.
  const [proposed] = useState(props.proposed);
  const [account, accountField] = useText('');
  const digits = account.replaceAll(/\s/g, '');
  return (
    <SingleActionDialog
      title={`Bank account of ${merchant.name}`}
      what={`Pay ${merchant.name} to account … ${proposed.last4}`}
      path={`/api/merchants/${merchant.id}/bank-accounts/${proposed.number}/confirm`}
      body={{ account_number: digits }}
      disabled={digits.length < 5}
      said={() =>
        `Account … ${proposed.last4} is confirmed. Payouts go there once a new account’s waiting time is over.`
      }
      close={close}
    >
      <AccountFacts of={proposed} zone={merchant.time_zone} />
      <Notice kind="warn">
        Check the account with the merchant on a telephone number that you already had, not on one
        from the letter that asks for the change.
      </Notice>
      <TextInput
        label="Account number"
        description="The whole number, as the merchant told you. It must match the proposed account."
        inputMode="numeric"
        autoComplete="off"
        maxLength={30}
        data-autofocus
        {...accountField}
      />
    </SingleActionDialog>
  );
}

function Statements({ of: merchant, payee, close }: Props) {
  const [email, emailField] = useText(payee.statement_email ?? '');
  const to = email.trim();
  const isSame = to === (payee.statement_email ?? '');
  return (
    <SingleActionDialog
      title={`Statements of ${merchant.name}`}
      what={to === '' ? 'Send no statements' : `Send statements to ${to}`}
      path={`/api/merchants/${merchant.id}/statements-to`}
      body={{ email: to === '' ? null : to }}
      said={() => (to === '' ? 'No statements are sent.' : `Statements go to ${to}.`)}
      disabled={isSame}
      close={close}
    >
      <TextInput
        label="E-mail address"
        description="Statements of paid payouts and of months go there. Leave it empty to send none."
        type="email"
        maxLength={254}
        data-autofocus
        {...emailField}
      />
    </SingleActionDialog>
  );
}
