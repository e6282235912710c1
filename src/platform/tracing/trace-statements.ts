import { beginPart, endSpan } from './trace.ts';

type Query = (...args: unknown[]) => unknown;

/**
 * Records a span for each statement of a connection or a pool, with the statement's verb and table
 * but none of its values.
 */
export function traceStatements(target: { query: unknown }): void {
  const query = (target.query as Query).bind(target);
  target.query = (...args: unknown[]) => {
    // The pool's own `query` has a span already. It passes a callback to the connection's.
    if (typeof args.at(-1) === 'function') return query(...args);
    const [first] = args;
    const text = typeof first === 'string' ? first : ((first as { text?: string }).text ?? '');
    const { verb, table } = describeStatement(text);
    const span = beginPart(table === null ? verb : `${verb} ${table}`, 'client');
    if (span === null) return query(...args);
    span.attributes = {
      'db.system.name': 'postgresql',
      'db.operation.name': verb,
      ...(table !== null && { 'db.collection.name': table }),
    };
    const answer = query(...args) as Promise<unknown>;
    answer.then(
      () => endSpan(span),
      () => {
        span.hasFailed = true;
        endSpan(span);
      },
    );
    return answer;
  };
}

function describeStatement(text: string): { verb: string; table: string | null } {
  const verb = /^\s*([a-z]+)/i.exec(text)?.[1]?.toLowerCase() ?? 'statement';
  const table = /\b(?:from|into|update)\s+(?:only\s+)?"?([a-z_]{1,63})/i.exec(text)?.[1] ?? null;
  return { verb, table };
}
