import type { IntegrationDeps } from '#merchants/integrations/create-integration.ts';
import { type Reencryption, reencryptKeys } from '#merchants/integrations/reencrypt-keys.ts';
import { plural } from '#platform/shared/plural.ts';
import { reencryptAccounts } from '#purchases/payouts/set-bank-account.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { type Command, command } from './command.ts';
import { type Connection, withSealing } from './connect.ts';

const reencrypt = command({
  name: 'keys reencrypt',
  help: `Re-encrypts the signing keys and bank accounts that are encrypted with a previous master
key. To change the master key:

  1. Restart the service with MASTER_KEY set to the new one and
     MASTER_KEY_PREVIOUS to the old one.
  2. Run this with the same settings. You can interrupt it and run it again.
  3. After 30 days, or one day if you use no payment links, restart the service
     without MASTER_KEY_PREVIOUS. Until then payments in flight, payment links
     and repeated answers may need it. Print the QR codes for tills again.

  MASTER_KEY=… MASTER_KEY_PREVIOUS=… tranche keys reencrypt`,
  async run(context) {
    const { terminal, print } = context;
    const done = await withSealing(context, (connection) =>
      reencryptAll(connection, (text) => terminal.progress(text)),
    ).finally(() => terminal.endProgress());
    const { examined, reencrypted, unreadable } = done;
    if (unreadable.length > 0) {
      throw new OperatorError(
        `Neither MASTER_KEY nor MASTER_KEY_PREVIOUS decrypts ${unreadable.length} of ${examined} signing keys and bank accounts ` +
          `(re-encrypted: ${reencrypted}). Run this again with the right key as MASTER_KEY_PREVIOUS, ` +
          `or replace them: ${unreadable.slice(0, 5).join(', ')}${unreadable.length > 5 ? ', …' : ''}`,
      );
    }
    print(
      { examined, reencrypted },
      () =>
        `Signing keys and bank accounts that are encrypted with the current master key: ${examined}. Re-encrypted just now: ${reencrypted}.`,
    );
  },
});

async function reencryptAll(
  connection: Connection & IntegrationDeps,
  progress: (text: string) => void,
): Promise<Reencryption> {
  const signing = await reencryptKeys(connection, connection.operator, {
    onProgress: ({ examined, reencrypted }) =>
      progress(`${plural(examined, 'signing key')} examined, ${reencrypted} re-encrypted`),
  });
  const banks = await reencryptAccounts(connection, connection.operator);
  return {
    examined: signing.examined + banks.examined,
    reencrypted: signing.reencrypted + banks.reencrypted,
    unreadable: [...signing.unreadable, ...banks.unreadable],
  };
}

export const commands: Command[] = [reencrypt];
