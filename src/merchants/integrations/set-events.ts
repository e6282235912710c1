import { noteEvents } from '#merchants/note-events.ts';
import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import { moveEvents, selectManaged } from './integration.sql.ts';
import { type EventKind, eventKinds, type Integration } from './integration.ts';
import { lockLiveIntegration } from './lock-integration.ts';

export type WantedEvents = {
  id: string;
  enable: EventKind[];
  disable: EventKind[];
  /** The URL for the events. Null removes it; undefined leaves it. */
  url?: string | null | undefined;
};

/**
 * Sets which changes to refunds, disputes and payouts an integration is informed of (decision
 * 0033). The caller has checked the URL. Earlier changes are not reported.
 */
export async function setEvents(
  deps: OperatorDeps,
  operator: string,
  { id, enable, disable, url }: WantedEvents,
): Promise<Pick<Integration, 'id' | 'events' | 'events_url'>> {
  const both = enable.find((kind) => disable.includes(kind));
  if (both !== undefined) {
    throw new OperatorError(`Events about ${both} are both enabled and disabled. Name them once.`);
  }
  return await operate(deps, operator, 'integrations events', async (db) => {
    const before = await lockLiveIntegration(db, id);
    const isWanted = (kind: EventKind) =>
      enable.includes(kind) || (before.events.includes(kind) && !disable.includes(kind));
    const events = eventKinds.filter(isWanted);
    const events_url = url === undefined ? before.events_url : url;
    await moveEvents(db, before.id, { events, events_url });
    if (events.length > 0) {
      const { merchant_id } = before;
      await noteEvents(db, merchant_id === null ? selectManaged(db, before.id) : [merchant_id]);
    }
    const was = { events: before.events, events_url: before.events_url };
    return {
      subject_id: before.id,
      merchant_id: before.merchant_id,
      details: { events, events_url, before: was },
      result: { id: before.id, events, events_url },
    };
  });
}
