import type { Database } from './database/database.ts';
import { deleteAnswersBefore } from './http/idempotency.sql.ts';
import { answersCutoff } from './http/idempotency.ts';
import { deleteEndedWindows } from './http/rate-limits.sql.ts';
import type { Clock } from './shared/clock.ts';
import { timestamp } from './shared/clock.ts';
import type { Logger } from './shared/logger.ts';

type WorkerDeps = { database: Database; clock: Clock; log: Logger };

/** Work that comes due. Any number of workers may do it at once. */
type DueWork = {
  name: string;
  pauseSeconds: number;
  /** Does some of what is due and says how much; a full hand is asked again at once. */
  run(deps: WorkerDeps, most: number): Promise<number>;
};

const dueWork: DueWork[] = [
  {
    name: 'forget idempotency keys',
    pauseSeconds: 60,
    run: ({ database, clock }, most) => deleteAnswersBefore(database.db, answersCutoff(clock), most),
  },
  {
    name: 'forget rate limit windows',
    pauseSeconds: 30,
    run: ({ database, clock }, most) =>
      deleteEndedWindows(database.db, timestamp(clock.now()), most),
  },
];

const handful = 1_000;

/** Runs until it is stopped; a failure is logged and tried again after the pause. */
export function startWorker(deps: WorkerDeps): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const loops = dueWork.map(async (work) => {
    while (!stopping.signal.aborted) {
      try {
        while ((await work.run(deps, handful)) === handful && !stopping.signal.aborted);
      } catch (error) {
        deps.log.error({ err: error, work: work.name }, 'due work failed');
      }
      await deps.clock.sleep(work.pauseSeconds * 1000, stopping.signal);
    }
  });
  return {
    async stop() {
      stopping.abort();
      await Promise.all(loops);
    },
  };
}
