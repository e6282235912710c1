import { credentials } from '#merchants/integrations/rotate-credential.ts';
import { integrationActions } from '#operating/operations/integrations.ts';
import { actionCommand, runAction } from './action-command.ts';
import { command, oneOf, required, UsageError } from './command.ts';
import { withMigrated, withSealing } from './connect.ts';
import { readDuration } from './duration.ts';
import { exampleId } from './integration-details.ts';
import { fields, showTime } from './terminal.ts';

const credentialNames = { client_secret: 'Client secret', signing_key: 'Signing key' };

export const rotate = command({
  name: 'integrations rotate',
  usage: ['ID --credential client_secret|signing_key [--overlap 24h]'],
  help: `Issues a new client secret or signing key and prints it once. The old one stays valid for the
overlap: 24h by default, at most 7d. Callbacks are signed with the old signing key until the
integration first signs with the new one, or the overlap ends.

If a credential leaked, use --overlap 0: everything older stops working within a second, even during
another rotation.

  tranche integrations rotate ${exampleId} \\
    --credential signing_key --overlap 7d`,
  positionals: ['ID'],
  options: {
    credential: { type: 'string' },
    overlap: { type: 'string', default: '24h' },
  },
  async run(context) {
    const [id = ''] = context.positionals;
    const { values, terminal, print } = context;
    const credential = oneOf(required(values.credential, 'credential'), credentials, 'credential');
    const overlapSeconds = readDuration(values.overlap, 'overlap');
    const body = { credential, overlap_seconds: overlapSeconds };
    const rotated = await withSealing(context, (deps) =>
      runAction(deps, integrationActions.rotate, { params: { id }, body }),
    );
    print(
      { id: rotated.id, [credential]: rotated.value },
      () => `${fields(terminal, [
        ['ID', rotated.id],
        [credentialNames[credential], terminal.accent(rotated.value)],
        [
          'The old one',
          overlapSeconds === 0
            ? 'is no longer valid'
            : `is valid until ${showTime(rotated.old_valid_until)}`,
        ],
      ])}

The new one is shown only once. Hand it over safely.`,
    );
  },
});

export const revoke = actionCommand(integrationActions.revoke, {
  name: 'integrations revoke',
  help: `Ends an integration permanently: within a second its client secrets stop working. Payments and
refunds already in progress are completed, and their callbacks are still signed with its key. If the
signing key leaked, also rotate it with --overlap 0.

  tranche integrations revoke ${exampleId}`,
  open: withMigrated,
  json: (revoked) => revoked,
  show: (_, revoked) => `It was revoked on ${showTime(revoked.revoked_at)}.`,
});

export const v1 = command({
  name: 'integrations v1',
  usage: ['ID --enable', 'ID --disable'],
  help: `--enable issues a client_id and a client_secret for the legacy v1 API, in addition to the
integration's own credentials, and prints them once.

--disable withdraws them: the credentials and every token issued for them stop working. Checkouts
that were created through v1 still get their callback in the v1 form.

  tranche integrations v1 ${exampleId} --enable`,
  positionals: ['ID'],
  options: { enable: { type: 'boolean' }, disable: { type: 'boolean' } },
  async run(context) {
    const [id = ''] = context.positionals;
    const { values, terminal, print } = context;
    if (values.enable === values.disable) {
      throw new UsageError('Give either --enable or --disable.');
    }
    if (values.disable) {
      const withdrawn = await withMigrated(context, (deps) =>
        runAction(deps, integrationActions.disableV1, { params: { id } }),
      );
      print(withdrawn, () => `v1 has been off since ${showTime(withdrawn.disabled_at)}.`);
      return 0;
    }
    const issued = await withMigrated(context, (deps) =>
      runAction(deps, integrationActions.enableV1, { params: { id } }),
    );
    print(
      issued,
      () => `${fields(terminal, [
        ['ID', issued.id],
        ['v1 client ID', issued.client_id],
        ['v1 client secret', terminal.accent(issued.client_secret)],
      ])}

The secret is shown only once. Hand it over safely. To replace it, use --disable
and then --enable.`,
    );
  },
});
