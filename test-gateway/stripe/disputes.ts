import type Stripe from 'stripe';
import type { Context } from '../books/context.ts';
import {
  answerDispute,
  findDispute,
  presentDispute,
  settleDispute,
  takesAnswer,
} from '../books/disputes.ts';
import { evidenceFiles, evidenceTexts } from '../objects/dispute.ts';
import type { Kept } from '../store.ts';
import { missing, StripeAnswer } from './errors.ts';
import { type Form, readForm } from './form.ts';
import { answerList } from './lists.ts';
import { type Answer, ok } from './operation.ts';

function openedDispute(context: Context, id: string): Kept<'dispute'> {
  const dispute = findDispute(context, id);
  if (dispute === null) throw missing('dispute', id);
  return dispute;
}

export function retrieveDispute(context: Context, form: Form, id: string): Answer {
  readForm(form, {});
  return ok(presentDispute(context, openedDispute(context, id)));
}

export function listDisputes(context: Context, form: Form): Answer {
  return answerList(context, form, {
    kind: 'dispute',
    url: '/v1/disputes',
    filters: ['charge', 'payment_intent'],
    present: (dispute) => presentDispute(context, dispute),
  });
}

const evidenceShape = Object.fromEntries(
  [...evidenceTexts, ...evidenceFiles].map((name) => [name, 'string' as const]),
);

/** Stripe's limit for each text of the evidence. */
const evidenceCharactersMax = 20_000;

/** Stages or submits evidence, and changes metadata. Evidence is submitted once, in time. */
export function updateDispute(context: Context, form: Form, id: string): Answer {
  const [named, emptied] = splitEmpty(form.evidence);
  const given = readForm(named ? { ...form, evidence: named } : form, {
    evidence: evidenceShape,
    submit: 'boolean',
    metadata: 'metadata',
  });
  const dispute = openedDispute(context, id);
  const { object } = dispute;
  if (given.metadata) Object.assign(object.metadata, given.metadata);
  if (given.evidence === undefined && given.submit !== true) {
    context.store.save('dispute', dispute);
    return ok(presentDispute(context, dispute));
  }
  refuseUnlessOpen(object);
  // As with Stripe, evidence is submitted unless the caller asks only to stage it.
  const evidence = (given.evidence ?? {}) as Record<string, string>;
  for (const name of evidenceTexts) {
    if ((evidence[name]?.length ?? 0) > evidenceCharactersMax) {
      throw new StripeAnswer(400, {
        type: 'invalid_request_error',
        message: `evidence[${name}] has more than ${evidenceCharactersMax} characters.`,
        param: `evidence[${name}]`,
      });
    }
  }
  for (const name of evidenceFiles) {
    const file = evidence[name];
    if (file !== undefined && context.store.find('file', file) === null) {
      throw missing('file upload', file, `evidence[${name}]`);
    }
  }
  answerDispute(context, dispute, { ...emptied, ...evidence }, given.submit !== false);
  return ok(presentDispute(context, dispute));
}

/** An empty text removes a field of the evidence. */
function splitEmpty(evidence: Form[string] | undefined): [Form | null, Record<string, null>] {
  if (typeof evidence !== 'object') return [null, {}];
  const isEmpty = ([name, value]: [string, string | Form]) =>
    value === '' && Object.hasOwn(evidenceShape, name);
  const entries = Object.entries(evidence);
  return [
    Object.fromEntries(entries.filter((entry) => !isEmpty(entry))),
    Object.fromEntries(entries.filter(isEmpty).map(([name]) => [name, null])),
  ];
}

/** Accepts the dispute, which is then lost. An inquiry is closed. */
export function closeDispute(context: Context, form: Form, id: string): Answer {
  readForm(form, {});
  const dispute = openedDispute(context, id);
  refuseUnlessOpen(dispute.object);
  settleDispute(context, dispute, 'lost');
  return ok(presentDispute(context, dispute));
}

function refuseUnlessOpen(dispute: Stripe.Dispute): void {
  if (takesAnswer(dispute)) return;
  throw new StripeAnswer(
    400,
    {
      type: 'invalid_request_error',
      message: `This dispute takes no evidence and cannot be closed because it has a status of ${dispute.status}.`,
    },
    true,
  );
}
