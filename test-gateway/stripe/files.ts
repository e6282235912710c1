import type { Context } from '../books/context.ts';
import { explainBadFile, makeFile } from '../objects/file.ts';
import { invalidRequest, missing } from './errors.ts';
import { type Form, readForm } from './form.ts';
import { type Answer, ok, oneOf, throwMissing } from './operation.ts';

/** Accepts a file. Of Stripe's purposes, only evidence for disputes is modelled. */
export function createFile(context: Context, form: Form): Answer {
  const given = readForm(form, {
    purpose: 'string',
    file: { filename: 'string', content: 'string' },
  });
  const purpose = given.purpose ?? throwMissing('purpose');
  oneOf(purpose, ['dispute_evidence'], 'purpose');
  const { filename = 'blob', content = throwMissing('file') } = given.file ?? {};
  const { merchant } = context;
  const bytes = Buffer.from(content, 'latin1');
  const problem = explainBadFile(bytes);
  if (problem !== null) throw invalidRequest(problem, { param: 'file' });
  const file = makeFile({ merchant, now: context.timeOf(merchant) }, filename, bytes);
  context.store.save('file', file);
  return ok(file.object);
}

export function retrieveFile(context: Context, form: Form, id: string): Answer {
  readForm(form, {});
  const file = context.store.find('file', id);
  if (file === null) throw missing('file upload', id);
  return ok(file.object);
}
