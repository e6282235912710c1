/** The moves of statuses that a run of many stories must reach. */
export const expectedTransitions = [
  ...[
    '→ received',
    'received → successful',
    'received → cancelled',
    'received → invalid_payload',
  ].map((move) => `checkouts: ${move}`),
  ...[
    ...['→ starting', 'starting → begun', 'starting → challenged', 'starting → authorised'],
    ...['starting → declined', 'starting → voiding', 'starting → charged', 'begun → authorised'],
    ...['begun → voiding', 'challenged → authorised', 'challenged → declined'],
    ...['challenged → voiding', 'challenged → voided', 'voiding → voided'],
  ].map((move) => `payment_attempts: ${move}`),
  ...[
    ...['→ authorised', '→ scheduled', 'authorised → collected', 'authorised → scheduled'],
    ...['authorised → cancelled', 'scheduled → collected', 'scheduled → overdue'],
    ...['scheduled → cancelled', 'overdue → scheduled', 'overdue → collected'],
  ].map((move) => `instalments: ${move}`),
  ...['→ open', 'open → collected', 'open → declined', 'open → lapsed'].map(
    (move) => `collections: ${move}`,
  ),
  ...[
    ...['→ requested', 'requested → pending', 'requested → failed', 'pending → complete'],
    ...['pending → failed', 'failed → pending'],
  ].map((move) => `refund_requests: ${move}`),
  ...['→ done', '→ open', 'open → done'].map((move) => `refund_parts: ${move}`),
  ...['→ pending', 'pending → delivered'].map((move) => `callbacks: ${move}`),
  ...[
    ...['→ inquiry', 'inquiry → closed', 'inquiry → needs_response'],
    ...['needs_response → under_review', 'needs_response → won', 'needs_response → lost'],
    ...['under_review → won', 'under_review → lost'],
  ].map((move) => `disputes: ${move}`),
  ...[
    ...['→ draft', 'draft → approved', 'approved → exported', 'exported → paid'],
    ...['exported → returned', 'paid → returned'],
  ].map((move) => `payouts: ${move}`),
];

/**
 * The pairs of actors that a run of many stories must see at once, each in the middle of an action.
 */
export const expectedRaces = [
  ...['tab pay × tab pay', 'tab pay × tab cancel', 'tab cancel × tab pay'],
  ...['tab pay × worker settle', 'worker settle × tab pay', 'tab plan × worker collect'],
  ...['worker collect × tab plan', 'tab card × worker collect', 'worker collect × tab card'],
  ...['tab plan × tab plan', 'tab plan × tab card', 'tab card × tab plan'],
  ...['tab plan × merchant ask', 'merchant ask × tab plan', 'merchant ask × worker collect'],
  ...['worker collect × merchant ask', 'worker collect × worker collect'],
  ...['worker collect × worker refunds', 'worker refunds × worker collect'],
  ...['merchant ask × worker refunds', 'worker refunds × worker refunds'],
  ...['worker collect × operator approve', 'operator approve × worker collect'],
  // A callback is retried for three hours, and the next payment is due a night or a month later. So
  // no worker delivers one while another begins to collect.
  'worker collect × worker callbacks',
  ...['worker statements × worker payouts', 'worker payouts × worker statements'],
];
