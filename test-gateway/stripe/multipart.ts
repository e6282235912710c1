import { invalidRequest } from './errors.ts';
import type { Form } from './form.ts';

/**
 * Reads a `multipart/form-data` body as a form. A file becomes an object with the file's name, and
 * with its bytes as Latin-1 text.
 */
export function parseMultipart(bytes: Buffer, contentType: string): Form {
  const boundary = /boundary=(?:"([^"]+)"|([^;\s]+))/.exec(contentType);
  const separator = Buffer.from(`--${boundary?.[1] ?? boundary?.[2] ?? ''}`);
  if (separator.length === 2) throw invalidRequest('The multipart body names no boundary.');
  const form: Form = Object.create(null);
  let at = bytes.indexOf(separator);
  while (at >= 0) {
    const start = at + separator.length;
    at = bytes.indexOf(separator, start);
    if (at < 0) break;
    // A part begins after the line of its separator, and ends before the line break in front of the
    // next separator.
    const part = bytes.subarray(start + 2, at - 2);
    const head = part.indexOf('\r\n\r\n');
    if (head < 0) throw invalidRequest('A part of the multipart body has no headers.');
    const headers = part.toString('utf8', 0, head);
    const name = /name="([^"]*)"/.exec(headers)?.[1];
    if (!name) throw invalidRequest('A part of the multipart body has no name.');
    const content = part.subarray(head + 4);
    const filename = /filename="([^"]*)"/.exec(headers)?.[1];
    form[name] =
      filename === undefined
        ? content.toString('utf8')
        : Object.assign(Object.create(null), { filename, content: content.toString('latin1') });
  }
  return form;
}
