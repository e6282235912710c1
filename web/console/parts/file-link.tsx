import { notifications } from '@mantine/notifications';
import { useState } from 'react';
import { NotReauthenticated, readFile } from '../api.ts';
import { Icon } from '../icons.tsx';
import { useFocusBack } from './dialog.tsx';
import { saveFile } from './save-file.ts';

/** Saves a file from the service. A file that names people asks for the passkey first. */
export function FileLink(props: { path: string; name: string; label: string }) {
  const { path, name, label } = props;
  const [busy, setBusy] = useState(false);
  useFocusBack(busy);
  const save = async () => {
    setBusy(true);
    try {
      saveFile(name, await readFile(path, `Download ${name}`));
    } catch (error) {
      if (!(error instanceof NotReauthenticated)) {
        const { message } = error as Error;
        notifications.show({ title: `Download ${name}`, message, color: 'danger' });
      }
    } finally {
      setBusy(false);
    }
  };
  return (
    <button type="button" className="link row-of" disabled={busy} onClick={() => void save()}>
      <Icon name="download" /> {busy ? 'Downloading…' : label}
    </button>
  );
}
