import type { CardEntry } from '#gateway/gateway.ts';
import type { MountCard } from './card-form.ts';
import { mountHyperswitch } from './hyperswitch.ts';
import { mountStripe } from './stripe.ts';

const cardForms: Record<CardEntry['form'], MountCard> = {
  hyperswitch: mountHyperswitch,
  stripe: mountStripe,
};

/** Mounts the card form of the adapter that the server uses. */
export const mountCard: MountCard = (where) => cardForms[where.entry.form](where);
