import { OperatorError } from '#record/actions/operate.ts';

export type ControlledGateway = { url: string; secretKey: string };

/**
 * Calls a control endpoint of the test gateway; a real gateway has none. Faults are sent as JSON.
 */
export async function controlGateway(
  { url, secretKey }: ControlledGateway,
  path: string,
  given: Record<string, string>,
): Promise<{ id: string }> {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secretKey}` },
    body: path === '/_test/faults' ? JSON.stringify(given) : new URLSearchParams(given),
  });
  const body = (await response.json()) as { id: string; error?: { message?: string } };
  if (response.ok) return body;
  throw new OperatorError(body.error?.message ?? `The test gateway answered ${response.status}.`);
}
