import { Button } from '@mantine/core';
import { useState } from 'react';
import { Notice } from './basics.tsx';
import { saveFile } from './save-file.ts';

/** Values that are shown only once. */
export function Secrets({ values }: { values: [string, string][] }) {
  return (
    <div className="stack">
      <Notice kind="warn" icon="key">
        Copy or download this now. It is not shown again.
      </Notice>
      {values.map(([name, value]) => (
        <div key={name}>
          <div className="quiet small">{name}</div>
          <div className="secret">
            <span data-secret={name}>{value}</span>
            <Copy value={value} name={name} />
          </div>
        </div>
      ))}
      <div>
        <Button
          variant="light"
          onClick={() =>
            saveFile(
              'tranche-credentials.txt',
              values.map(([name, value]) => `${name}: ${value}\n`).join(''),
            )
          }
        >
          Download
        </Button>
      </div>
    </div>
  );
}

export function Copy({ value, name }: { value: string; name: string }) {
  const [copied, setCopied] = useState(false);
  return (
    <Button
      size="compact-sm"
      variant="default"
      aria-label={`Copy: ${name}`}
      onClick={() =>
        void navigator.clipboard?.writeText(value).then(() => {
          setCopied(true);
          setTimeout(() => setCopied(false), 2000);
        })
      }
    >
      {copied ? 'Copied' : 'Copy'}
    </Button>
  );
}
