// Every limit of callback delivery, with its reason. Decisions 0033 and 0041 say how they were
// chosen.

// Limits of one callback.

/** The first delivery of a run and the 18 retries that the contract promises. */
export const runAttemptsMax = 19;

/** The contract's interval between two attempts. */
export const retryMinutes = 10;

/** A receiver may ask for a longer pause. With this limit a run still ends within a day. */
export const postponeMinutesMax = 60;

/**
 * The deadline of the whole exchange, the response body included. The contract asks receivers to
 * respond well under ten seconds, and the shopper waits for the first delivery.
 */
export const deadlineSeconds = 10;

/**
 * A lease lasts longer than an exchange and the recording of it, so that two exchanges of one
 * callback never overlap.
 */
export const leaseSeconds = deadlineSeconds + 5;

/**
 * A request that was sent and has no answer after this time is marked as sent, so that the process
 * that takes over after a crash does not send it again too soon. Most receivers answer sooner, and
 * cost the database nothing.
 */
export const markSentMilliseconds = 1_000;

// Limits of one exchange.

/** Connecting takes at most half of the deadline, so that the receiver has the other half. */
export const connectMilliseconds = (deadlineMilliseconds: number) => deadlineMilliseconds / 2;

/**
 * Two queries to a name server, together shorter than the time for a connection, so that a slow
 * name server is not mistaken for a slow receiver.
 */
export const nameServerQuery = { timeout: 1_000, tries: 2 };

/**
 * Shorter than the time for which servers keep idle connections, because a callback fails if the
 * server closes the connection first.
 */
export const keepAliveMilliseconds = 1_000;

/**
 * A receiver may announce that it keeps connections longer (`Keep-Alive: timeout=5`). Then we keep
 * them two seconds less than announced, but no longer than this limit. Opening a connection costs
 * more than a delivery.
 */
export const announcedKeepAliveMillisecondsMax = 10_000;

/** Enough for any JSON with a `redirect_url`; the rest of a longer body is not read. */
export const responseBodyBytesMax = 64 * 1024;
export const responseHeaderBytesMax = 16 * 1024;

/**
 * How much of a response an attempt stores. Receivers choose how long their answers are, and a
 * callback may have 19 of them. This is enough for an error message, and less than 250 KiB for a
 * checkout.
 */
export const storedBodyBytesMax = 8 * 1024;
export const storedHeaderBytesMax = 4 * 1024;

/** Longer URLs do not work in every browser. */
export const redirectUrlLengthMax = 2048;

// Limits of one process.

/**
 * How many deliveries may be in flight; each takes one slot. Receivers that take a fifth of a
 * second need many slots, and larger batches of attempts cost the database less per attempt.
 */
export const deliveriesMax = 1_024;

/**
 * One choice begins at most this many deliveries to a destination, so that merchants take turns.
 */
export const sendBatchSize = 8;

/** Deliveries in flight for one merchant, and to one host, so that neither takes all slots. */
export const merchantDeliveriesMax = 2 * sendBatchSize;
export const hostDeliveriesMax = 2 * sendBatchSize;

/** A delivery that takes longer makes its host slow. */
export const slowMilliseconds = 2_000;

/** Slow hosts share these separate slots, so that they never take slots from the others. */
export const slowDeliveriesMax = 32;
export const slowHostDeliveriesMax = 1;

/** A host that answers sooner is quick. */
export const quickMilliseconds = 200;

/** Callbacks in a claim for a host that is not quick: as many as one choice sends. */
export const claimBatchSize = 8;

/**
 * Callbacks in a claim for a quick host: more than are sent at once, so that there are fewer
 * claims. The next claim begins when half of the batch is left, so that the host never waits for
 * the database.
 */
export const quickClaimBatchSize = 16 * claimBatchSize;
export const quickClaimedMin = quickClaimBatchSize / 2;

/**
 * A claimed callback must be sent within ten seconds, so that `leaseSeconds` are left for the
 * exchange.
 */
export const claimLeaseSeconds = 10 + leaseSeconds;

/**
 * Claims in flight. There are few, so that the database has free connections for opening and
 * recording attempts.
 */
export const claimsMax = 4;

/** The usual time between two looks, which are expensive while many callbacks are due. */
export const lookMilliseconds = 1_000;

/** The dispatcher chooses again at least this often, to notice a delivery that hangs. */
export const pauseMilliseconds = 250;

/** Destinations listed at once: about as many as there are slots. */
export const destinationsMax = 1_000;

/** Destinations listed for one merchant: one for each of its slots. */
export const merchantDestinationsMax = 16;

/** Attempts in one commit: enough to share a flush of the disk, few enough to keep it short. */
export const commitBatchSize = 400;

/** Expired attempts deleted in one transaction: few enough to keep locks short. */
export const expireBatchSize = 1_000;

/**
 * How long the daily results of a destination are kept. The lists of destinations show fewer days.
 */
export const statisticsDays = 60;

// Limits of one destination.

/** Failures in a row before the operator is alerted. Fewer may be chance. */
export const failuresBeforeAlert = 5;
