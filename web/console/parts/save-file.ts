const types: Record<string, string> = {
  csv: 'text/csv',
  html: 'text/html',
  xml: 'application/xml',
};

/** Saves a text, or a file from the service, on the person's device. */
export function saveFile(name: string, content: string | Blob): void {
  const type = types[name.split('.').at(-1) ?? ''] ?? 'text/plain';
  const url = URL.createObjectURL(
    typeof content === 'string' ? new Blob([content], { type }) : content,
  );
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // Safari reads the URL only after this turn of the event loop.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
