import { Button, Checkbox, Select, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import type { Sessions } from '#operating/console/session.schema.ts';
import type {
  Invitation,
  Person,
  ReleasedInvitation,
  Roles,
} from '#operating/operations/people.schema.ts';
import type { OperatorRole } from '#operating/people/permission.ts';
import { get } from '../api.ts';
import { changesOf } from '../changes.ts';
import { longTime, plural, sentence, words } from '../format.ts';
import { ActionDialog, useAction } from '../parts/actions.tsx';
import { AlertMails } from '../parts/alert-mails.tsx';
import { Person as Avatar, Facts, Notice, PageHead, Status, Time } from '../parts/basics.tsx';
import { MerchantFilter } from '../parts/filters.tsx';
import { type Column, List } from '../parts/list.tsx';
import { MerchantsSelect, useMerchantNames } from '../parts/merchants.tsx';
import { Secrets } from '../parts/secrets.tsx';
import { SessionLines } from '../parts/sessions.tsx';
import { Unread } from '../parts/states.tsx';
import { useText } from '../parts/text.ts';
import { useCan, useChoice, useSession, useShop } from '../session.tsx';
import { useOpened } from '../url.ts';

/** A role from a later version has no description here. */
const roleWords: Record<string, string> = {
  viewer: 'A viewer reads, but changes nothing.',
  support: 'Support answers shoppers, asks for refunds, and retries payments and callbacks.',
  refunds: 'The refunds role reviews and retries refunds.',
  finance: 'Finance approves payouts, confirms bank accounts and answers disputes.',
  'on-call': 'The on-call role handles alerts, and retries refunds, payments and callbacks.',
  admin: 'An admin may do everything, and decides who uses the console.',
  'merchant-admin':
    'A merchant admin runs a shop: refunds, payment links, keys, bank account, people.',
  till: 'A till sells by link and asks for refunds, and sees no totals.',
  auditor: 'An auditor reads everything, including the audit.',
} satisfies Record<OperatorRole, string>;

const rolesOf = (roles: string[]) => roles.map((role) => sentence(words(role))).join(', ');

function PersonStatus({ of: person }: { of: Person }) {
  if (person.revoked_at !== null) return <Status of="revoked" />;
  if (person.invitation?.is_held) return <Status of="held" />;
  if (!person.is_registered) return <Status of="invited" />;
  return <Status of={person.is_confirmed ? 'active' : 'unconfirmed'} />;
}

export default function People() {
  const can = useCan();
  const { opened, hrefOf, close } = useOpened('person');
  const [inviting, setInviting] = useState(false);
  const { scope } = useSession();
  const seesAll = scope === 'all';
  const seesOne = useShop() !== null;
  const columns: Column<Person>[] = [
    {
      head: 'Name',
      cell: (row) => (
        <span className="person">
          <Avatar name={row.name} />
          <span>{row.name}</span>
        </span>
      ),
    },
    {
      head: 'Status',
      cell: (row) => <PersonStatus of={row} />,
      phone: 'end',
    },
    { head: 'E-mail', cell: (row) => row.email, phone: 'sub' },
    { head: 'Roles', cell: (row) => rolesOf(row.roles), phone: 'sub' },
    ...(seesOne
      ? []
      : [
          {
            head: 'Sees',
            cell: (row: Person) =>
              row.merchant_ids === null
                ? 'All merchants'
                : plural(row.merchant_ids.length, seesAll ? 'merchant' : 'shop'),
            phone: 'sub' as const,
          },
        ]),
    { head: 'Since', right: true, cell: (row) => <Time at={row.created_at} />, phone: 'hide' },
  ];
  return (
    <>
      <PageHead
        title="People"
        about={
          seesAll
            ? 'Who may use the console, in which roles and for whom.'
            : 'Who at your shop may use the console, and in which roles.'
        }
      >
        <MerchantFilter />
        {can('people.manage') && <Button onClick={() => setInviting(true)}>Invite a person</Button>}
      </PageHead>
      <List
        path="/api/people"
        takes={['merchant']}
        label="People"
        columns={columns}
        keyOf={(row) => row.id}
        hrefOf={(row) => hrefOf(row.id)}
        empty={{
          icon: 'people',
          title: 'No people yet',
          text: 'Invite the first person. They register a passkey with the link that they get.',
        }}
      />
      {inviting && <Access close={() => setInviting(false)} />}
      {opened && <PersonDialog key={opened} id={opened} close={close} />}
    </>
  );
}

/** Invites a person, also one who has lost their passkey, or changes what a person may do. */
function Access({ of, close }: { of?: Person; close: () => void }) {
  // The person as they were when the dialog opened; the page keeps refreshing them.
  const [person] = useState(of);
  const { data: known } = useQuery({
    queryKey: ['/api/roles'],
    queryFn: ({ signal }) => get<Roles>('/api/roles', {}, signal),
  });
  const [email, emailField] = useText(person?.email ?? '');
  const [name, nameField] = useText(person?.name ?? '');
  const [roles, setRoles] = useState<string[]>(person?.roles ?? []);
  const { scope: ownScope } = useSession();
  const { merchant: chosen } = useChoice();
  const own = ownScope === 'all' ? null : ownScope;
  const [scope, setScope] = useState(person?.merchant_ids || own ? 'some' : 'all');
  const [merchantIds, setMerchantIds] = useState<string[]>(
    person?.merchant_ids ?? (own?.length === 1 ? own : chosen === null ? [] : [chosen]),
  );
  const [invitation, setInvitation] = useState<Invitation | null>(null);
  const { run, busy, problem } = useAction();
  const merchant_ids = scope === 'all' ? null : merchantIds;
  const access = { name: name.trim(), roles, merchant_ids };
  const changes = person && changesOf(person, access, ['roles', 'merchant_ids']);
  const isGood =
    roles.length > 0 &&
    (scope === 'all' || merchantIds.length > 0) &&
    (person ? changes !== null && access.name !== '' : /^\S+@\S+$/.test(email.trim()));
  const what = person ? `Change ${person.name}` : `Invite ${email.trim() || 'the person'}`;
  const send = () =>
    person
      ? run({
          method: 'PATCH',
          path: `/api/people/${person.id}`,
          body: changes,
          what,
          said: () => `${name.trim()} was changed.`,
        }).then((answer) => answer && close())
      : run<Invitation>({
          path: '/api/people',
          body: {
            email: email.trim(),
            ...(name.trim() && { name: name.trim() }),
            roles,
            merchant_ids,
          },
          what,
        }).then(setInvitation);
  return (
    <ActionDialog
      title={invitation ? 'The invitation' : person ? person.name : 'Invite a person'}
      opened
      close={close}
      what={what}
      hideAction={invitation !== null}
      disabled={!isGood}
      busy={busy}
      problem={problem}
      onAction={() => void send()}
    >
      {invitation ? (
        <Delivery of={invitation} />
      ) : (
        <>
          {!person && (
            <TextInput
              label="E-mail"
              description="A person who had access before is signed out and gets a new link once another administrator releases the invitation."
              type="email"
              data-autofocus
              {...emailField}
            />
          )}
          <TextInput
            label="Name"
            {...(!person && { description: 'Colleagues see it beside what the person does.' })}
            maxLength={100}
            {...nameField}
          />
          <Checkbox.Group
            label="Roles"
            value={roles}
            onChange={setRoles}
            description={roles.map((role) => roleWords[role] ?? '').join(' ')}
            inputWrapperOrder={['label', 'input', 'description', 'error']}
          >
            <div className="choices">
              {(known?.data ?? []).map(({ role }) => (
                <Checkbox key={role} value={role} label={sentence(words(role))} />
              ))}
            </div>
          </Checkbox.Group>
          {own === null && (
            <Select
              label="Sees"
              data={[
                { value: 'all', label: 'All merchants' },
                { value: 'some', label: 'Some merchants' },
              ]}
              value={scope}
              onChange={(value) => setScope(value ?? 'all')}
            />
          )}
          {scope === 'some' && own?.length !== 1 && (
            <MerchantsSelect name="Merchants" value={merchantIds} onChange={setMerchantIds} />
          )}
        </>
      )}
    </ActionDialog>
  );
}

/** How the link of a new invitation reaches the person. */
function Delivery({ of: { person, delivery, expires_at } }: { of: Invitation }) {
  if (delivery === 'mailed') {
    return (
      <p>
        The link is on its way to <strong>{person.email}</strong>. It works once, until{' '}
        {longTime(expires_at)}.
      </p>
    );
  }
  return (
    <p>
      Another administrator has to release the link, until {longTime(expires_at)}: People, then{' '}
      {person.name}. You never see it yourself.
    </p>
  );
}

/** Merchants by their names. */
function MerchantList({ ids }: { ids: string[] }) {
  const { data: merchants } = useMerchantNames(ids);
  return ids.map((id) => merchants?.find((one) => one.id === id)?.name ?? id).join(', ');
}

/**
 * The invitation for a person. If it is waiting for a second administrator, a button releases it.
 */
function InvitationNotice(props: {
  of: Person;
  released: (answer: ReleasedInvitation | null) => void;
}) {
  const { of: person, released } = props;
  const can = useCan();
  const { run, busy, problem } = useAction();
  const { invitation } = person;
  if (!invitation) return null;
  if (!invitation.is_held) {
    return (
      <Notice>
        {invitation.made_by} invited them. The link works until {longTime(invitation.expires_at)}.
      </Notice>
    );
  }
  const what = `Release the invitation for ${person.name}`;
  const { name = person.name, roles, merchant_ids } = invitation.access ?? person;
  return (
    <Notice kind="warn">
      <div className="stack tight">
        <span>
          {invitation.made_by} invited them{person.is_registered && ' again'}
          {name !== person.name && (
            <>
              {' '}
              under another name, <strong>{name}</strong>
            </>
          )}
          , as <strong>{rolesOf(roles)}</strong> of{' '}
          {merchant_ids === null ? 'all merchants' : <MerchantList ids={merchant_ids} />}. The link
          waits for another administrator until {longTime(invitation.expires_at)}.
        </span>
        <span>
          First ask {person.name}, over a channel that you trust, whether they expect it.
          {person.is_registered &&
            ' Their passkeys and sessions keep working until the release, which ends them.'}
        </span>
        {invitation.release_refusal !== null ? (
          <span>{invitation.release_refusal}</span>
        ) : (
          can('people.manage') && (
            <div>
              <Button
                size="compact-sm"
                disabled={busy}
                onClick={() =>
                  void run<ReleasedInvitation>({
                    path: `/api/people/${person.id}/release`,
                    body: { was: { name, roles, merchant_ids } },
                    what,
                  }).then(released)
                }
              >
                Release the invitation
              </Button>
            </div>
          )
        )}
        {problem !== null && <span>{problem}</span>}
      </div>
    </Notice>
  );
}

/**
 * The link of an invitation that was just released. It is shown only once. If it was mailed, it is
 * not shown at all.
 */
function Released({ of, person }: { of: ReleasedInvitation; person: Person }) {
  if (of.url === null) return <Notice>The link is on its way to {person.email}.</Notice>;
  return (
    <>
      <Secrets values={[['Link', of.url]]} />
      <p className="quiet">
        Give it to {person.email} yourself, in a way that you trust. It works once, until{' '}
        {longTime(of.expires_at)}.
      </p>
    </>
  );
}

/** Says why a person cannot be the second approver yet, with the button that confirms them. */
function ConfirmationNotice({ of: person }: { of: Person }) {
  const can = useCan();
  const { run, busy, problem } = useAction();
  if (person.is_confirmed || !person.is_registered || person.revoked_at !== null) return null;
  if (!can('people.confirm')) {
    return (
      <Notice>
        {person.name} can work as usual, and can be the second approver once the payment service has
        confirmed them.
      </Notice>
    );
  }
  const { name, roles, merchant_ids } = person;
  return (
    <Notice kind="warn">
      <div className="stack tight">
        <span>
          {person.merchant_ids === null
            ? 'Another administrator released this invitation and saw its link.'
            : 'A merchant’s administrator invited this person or gave them more access, or another administrator saw the invitation’s link.'}{' '}
          {person.name} can be the second approver once you confirm them. First call them or the
          merchant on a number that you know, and ask whether they registered themselves.
        </span>
        <div>
          <Button
            size="compact-sm"
            disabled={busy}
            onClick={() =>
              void run({
                path: `/api/people/${person.id}/confirm`,
                body: { was: { name, roles, merchant_ids } },
                what: `Confirm ${person.name}`,
                said: () => `${person.name} can now be the second approver.`,
              })
            }
          >
            Confirm {person.name}
          </Button>
        </div>
        {problem !== null && <span>{problem}</span>}
      </div>
    </Notice>
  );
}

function PersonDialog({ id, close }: { id: string; close: () => void }) {
  const can = useCan();
  const { person: own } = useSession();
  const {
    data: person,
    error,
    refetch,
  } = useQuery({
    queryKey: ['/api/people', id],
    queryFn: ({ signal }) => get<Person>(`/api/people/${id}`, {}, signal),
  });
  const sessions = useQuery({
    queryKey: ['/api/people', id, 'sessions'],
    queryFn: ({ signal }) => get<Sessions>(`/api/people/${id}/sessions`, {}, signal),
  });
  const [changing, setChanging] = useState(false);
  const [released, setReleased] = useState<ReleasedInvitation | null>(null);
  const { run, busy, problem } = useAction();
  const mayManage = can('people.manage') && person?.revoked_at === null;
  if (changing && person) return <Access of={person} close={() => setChanging(false)} />;
  const what = `Revoke ${person?.name ?? ''}`;
  return (
    <ActionDialog
      title={person?.name ?? 'Person'}
      size="lg"
      opened
      close={close}
      what={what}
      danger
      hideAction={!mayManage || id === own.id}
      {...(released?.url && { stays: true, leave: 'I have stored it' })}
      busy={busy}
      problem={problem}
      before={
        mayManage && (
          <Button variant="subtle" onClick={() => setChanging(true)}>
            Change roles…
          </Button>
        )
      }
      onAction={() =>
        void run({
          path: `/api/people/${id}/revoke`,
          what,
          said: () => `${person?.name} can no longer sign in. Their sessions have ended.`,
        }).then((answer) => answer && close())
      }
    >
      {error || !person ? (
        <Unread of={{ error, refetch }} lines={4} />
      ) : (
        <>
          {person.revoked_at !== null && (
            <Notice kind="bad">
              Revoked <Time at={person.revoked_at} exact />.
            </Notice>
          )}
          {released ? (
            <Released of={released} person={person} />
          ) : (
            <InvitationNotice of={person} released={setReleased} />
          )}
          <ConfirmationNotice of={person} />
          <Facts
            rows={[
              ['E-mail', person.email],
              ['Roles', rolesOf(person.roles)],
              [
                'Sees',
                person.merchant_ids === null ? (
                  'All merchants'
                ) : (
                  <MerchantList key="sees" ids={person.merchant_ids} />
                ),
              ],
              ['Since', <Time key="since" at={person.created_at} exact />],
              [
                'Other access',
                person.identity_id !== null && (
                  <Link href={`/people?person=${person.identity_id}`}>
                    Another merchant invited them first
                  </Link>
                ),
              ],
              [
                'Actions',
                can('audit.read') && (
                  <Link href={`/audit?person=${person.id}`}>What {person.name} did</Link>
                ),
              ],
            ]}
          />
          {person.revoked_at === null && <AlertMails of={person} />}
          <section>
            <h3>Sessions</h3>
            {sessions.data ? (
              <SessionLines
                sessions={sessions.data}
                pathOf={(session) => `/api/people/${id}/sessions/${session}`}
                owner={person.name}
                mayRevoke={can('people.manage')}
              />
            ) : (
              <Unread of={sessions} lines={2} />
            )}
          </section>
        </>
      )}
    </ActionDialog>
  );
}
