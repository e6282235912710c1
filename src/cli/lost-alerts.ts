import type { Handle } from '#platform/database/database.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { listKnownAlerts } from '#record/alerts/alert.sql.ts';
import type { Context } from './command.ts';
import { readLines } from './read-lines.ts';

/** An alert that is in the log or in a post, but not in the restored database. */
export type LostAlert = { id: string; at: string; kind: string; detail: string };

/** Alerts about changes of access. */
const kinds = ['access_ended', 'person_invited', 'ways_in_replaced', 'access_widened'];

/**
 * Lists the alerts about access in a log, or in stored posts, that the database does not have
 * because it lost what happened after its backup. An alert is one line, as a JSON object; other
 * lines are skipped.
 */
export async function listLostAlerts(
  db: Handle,
  file: string,
  stdin: Context['stdin'],
): Promise<LostAlert[]> {
  const found = new Map<string, LostAlert>();
  for await (const line of readLines(file, stdin)) {
    const alert = readAlert(line);
    if (alert) found.set(alert.id, alert);
  }
  const known = await listKnownAlerts(db, [...found.keys()]);
  return [...found.values()]
    .filter(({ id }) => !known.has(id))
    .sort((one, other) => (one.at < other.at ? -1 : 1));
}

/** A line of the log contains the alert as a member, while a post is the alert itself. */
function readAlert(line: string): LostAlert | null {
  if (!kinds.some((kind) => line.includes(kind))) return null;
  try {
    const parsed = JSON.parse(line.slice(line.indexOf('{')));
    const { id, at, kind, detail = '' } = parsed.alert ?? parsed;
    const isAlert = isUuid(id) && kinds.includes(kind) && !Number.isNaN(Date.parse(at));
    return isAlert ? { id: id.toLowerCase(), at, kind, detail: String(detail) } : null;
  } catch {
    return null;
  }
}
