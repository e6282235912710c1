const types: Record<string, string> = {
  csv: 'text/csv',
  html: 'text/html',
  xml: 'application/xml',
};

/** Offers a text or a file of the service for saving. */
export function saveFile(name: string, content: string | Blob): void {
  const type = types[name.split('.').at(-1) ?? ''] ?? 'text/plain';
  const url = URL.createObjectURL(
    typeof content === 'string' ? new Blob([content], { type }) : content,
  );
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // Safari reads the address only after this turn.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
