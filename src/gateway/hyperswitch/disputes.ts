import { createHmac, timingSafeEqual } from 'node:crypto';
import type { DisputeCalls } from '#gateway/adapter.ts';
import { type DisputeState, type Gateway, RequestRefused } from '#gateway/gateway.ts';
import { networkEvidence } from '#gateway/network-evidence.ts';
import type { Dispute } from './answers.ts';
import { fail, type HyperswitchApi } from './api.ts';
import { timeOf } from './states.ts';

/** An inquiry by the bank withdraws nothing yet. */
const isInquiry = ({ dispute_stage }: Dispute) => dispute_stage === 'pre_dispute';

/** Returns null if we do not know the status. */
function knownStatus(dispute: Dispute): DisputeState['status'] | null {
  switch (dispute.dispute_status) {
    case 'dispute_opened':
      return isInquiry(dispute) ? 'inquiry' : 'needs_response';
    case 'dispute_challenged':
      return isInquiry(dispute) ? 'inquiry' : 'under_review';
    case 'dispute_won':
      return isInquiry(dispute) ? 'closed' : 'won';
    case 'dispute_lost':
    case 'dispute_accepted':
    case 'dispute_expired':
      // If the bank gets no answer in time, it decides for the cardholder.
      return isInquiry(dispute) ? 'closed' : 'lost';
    case 'dispute_cancelled':
      return 'closed';
    default:
      return null;
  }
}

/** A dispute whose status we do not know counts as open, so that its plan is paused. */
function statusOf(dispute: Dispute): DisputeState['status'] {
  return knownStatus(dispute) ?? (isInquiry(dispute) ? 'inquiry' : 'needs_response');
}

/**
 * The gateway reports neither fees nor movements, so the amount counts as withdrawn until we win.
 */
function withdrawnBy(dispute: Dispute): number {
  const isWithdrawn = ['needs_response', 'under_review', 'lost'].includes(statusOf(dispute));
  return isWithdrawn ? Number(dispute.amount) : 0;
}

const unanswered = new Set(['dispute_opened', 'dispute_accepted', 'dispute_expired']);

export function disputeState(dispute: Dispute): DisputeState {
  const { challenge_required_by: due, dispute_status } = dispute;
  return {
    dispute_ref: dispute.dispute_id,
    payment_ref: dispute.payment_id,
    amount: Number(dispute.amount),
    currency: dispute.currency,
    reason: dispute.connector_reason ?? 'general',
    network_reason_code: dispute.connector_reason_code ?? null,
    status: statusOf(dispute),
    ...(knownStatus(dispute) === null && { unknown_status: dispute_status.slice(0, 50) }),
    opened_at: timeOf(dispute.created_at),
    due_by: due ? timeOf(due) : null,
    has_answer: knownStatus(dispute) !== null && !unanswered.has(dispute_status),
    withdrawn: withdrawnBy(dispute),
    fee: 0,
    other_currency: null,
  };
}

const pageSize = 100;

/**
 * One page of all disputes, the newest first. `after` is the number of disputes before this page,
 * and the first dispute of the previous page. Only the server's source code documents the offset: a
 * server that ignores it answers with the same page again, and the list ends there.
 */
export async function listDisputes(
  api: HyperswitchApi,
  after: string | null,
): Promise<{ disputes: Dispute[]; next: string | null }> {
  const [skipped, first] = (after ?? '0').split(' ');
  const offset = Number(skipped);
  const query = `limit=${pageSize}${offset > 0 ? `&offset=${offset}` : ''}`;
  const disputes = await api.call<Dispute[]>('GET', `/disputes/list?${query}`, {}).catch(fail);
  const newest = disputes[0]?.dispute_id;
  if (newest !== undefined && newest === first) return { disputes: [], next: null };
  const isLast = disputes.length < pageSize;
  return { disputes, next: isLast ? null : `${offset + pageSize} ${newest}` };
}

/** The calls of the gateway's port for disputes. */
export function disputeCalls(api: HyperswitchApi): DisputeCalls {
  const { webhookSecret } = api.settings;
  const retrieve: Gateway['dispute'] = async (merchant, dispute_ref) => {
    const path = `/disputes/${encodeURIComponent(dispute_ref)}`;
    return disputeState(await api.call<Dispute>('GET', path, { merchant }).catch(fail));
  };
  return {
    async readEvent(raw, header) {
      if (
        webhookSecret === undefined ||
        !isSigned(webhookSecret, raw, header('x-webhook-signature-512'))
      )
        return null;
      try {
        const { event_id, content } = JSON.parse(raw.toString('utf8'));
        const isDispute = content?.type === 'dispute_details';
        return {
          event_id: typeof event_id === 'string' ? event_id : null,
          dispute_ref: isDispute ? String(content.object.dispute_id) : null,
        };
      } catch {
        return null;
      }
    },

    async listDisputes(after) {
      const { disputes, next } = await listDisputes(api, after);
      return { disputes: disputes.map(disputeState), next };
    },

    dispute: retrieve,

    async uploadEvidence() {
      throw new RequestRefused(
        'this gateway accepts no files: remove them, and describe them in words',
      );
    },

    async stageEvidence() {
      throw new RequestRefused('this gateway sends evidence to the bank as soon as it gets it');
    },

    async submitEvidence({ merchant, dispute_ref, evidence }) {
      const body = { dispute_id: dispute_ref, ...networkEvidence(evidence) };
      const sent = await api
        .call<Dispute>('POST', '/disputes/evidence', { merchant, body })
        .catch(fail);
      return disputeState(sent);
    },

    async acceptDispute({ merchant, dispute_ref }) {
      const path = `/disputes/accept/${encodeURIComponent(dispute_ref)}`;
      return disputeState(await api.call<Dispute>('POST', path, { merchant }).catch(fail));
    },
  };
}

function isSigned(secret: string, raw: Buffer, signature: string): boolean {
  const wanted = createHmac('sha512', secret).update(raw).digest();
  const given = Buffer.from(/^[\da-f]{128}$/i.test(signature) ? signature : '', 'hex');
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}
