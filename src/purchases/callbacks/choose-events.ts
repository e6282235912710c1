import type { Integration } from '#merchants/integrations/integration.ts';
import { setEvents, type WantedEvents } from '#merchants/integrations/set-events.ts';
import {
  type Destinations,
  explainBadNotifyUrl,
} from '#purchases/callbacks/delivery/destination.ts';
import { type OperatorDeps, OperatorError } from '#record/actions/operate.ts';

/** The addresses that callbacks may go to. */
export type EventDeps = { callbackAllow: Destinations };

const urlCharactersMax = 2048;

/**
 * Sets which events an integration gets, and at which URL. Callbacks must be allowed to go there.
 */
export async function chooseEvents(
  deps: OperatorDeps & EventDeps,
  operator: string,
  wanted: WantedEvents,
): Promise<Pick<Integration, 'id' | 'events' | 'events_url'>> {
  const { url: text } = wanted;
  if (typeof text === 'string') {
    const url = text.length <= urlCharactersMax ? URL.parse(text) : null;
    const problem = url ? explainBadNotifyUrl(url, deps.callbackAllow) : 'must be an https URL';
    if (problem !== null) throw new OperatorError(`The address for events ${problem}.`);
  }
  return await setEvents(deps, operator, wanted);
}
