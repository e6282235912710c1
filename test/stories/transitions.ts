/** The moves of statuses that a long run must reach. */
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
    ...['→ inquiry', '→ needs_response', 'inquiry → closed', 'inquiry → needs_response'],
    ...['needs_response → under_review', 'needs_response → won', 'needs_response → lost'],
    ...['under_review → won', 'under_review → lost'],
  ].map((move) => `disputes: ${move}`),
  ...[
    ...['→ draft', 'draft → approved', 'approved → exported', 'exported → paid'],
    ...['exported → returned', 'paid → returned'],
  ].map((move) => `payouts: ${move}`),
];

/** The pairs of actors that a long run must see at once, each in the middle of an action. */
export const expectedRaces: string[] = [];
