import { Button } from '@mantine/core';
import type { BankFile } from '#operating/operations/payout.schema.ts';
import { useQuietAction } from './actions.tsx';
import { saveFile } from './save-file.ts';

const formats = [
  { format: 'pain.001', extension: 'xml', label: 'pain.001' },
  { format: 'csv', extension: 'csv', label: 'CSV' },
] as const;

/** Saves the file of a bank run as the message that banks read, or as CSV. */
export function BankFileButtons({ of: export_id }: { of: string }) {
  const { run, busy } = useQuietAction();
  const save = async ({ format, extension, label }: (typeof formats)[number]) => {
    const answer = await run<BankFile>({
      path: `/api/payout-exports/${export_id}/file?format=${format}`,
      what: `Save the file for the bank, ${label}`,
    });
    if (answer) saveFile(`bank-run-${export_id}.${extension}`, answer.file);
  };
  return (
    <span className="row-of">
      {formats.map((one) => (
        <Button
          key={one.format}
          size="xs"
          variant={one.format === 'csv' ? 'default' : 'filled'}
          disabled={busy}
          onClick={() => void save(one)}
        >
          Save as {one.label}
        </Button>
      ))}
    </span>
  );
}
