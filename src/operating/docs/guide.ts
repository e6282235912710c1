import {
  type Audience,
  type DescribedRoute,
  describeLimit,
  exampleSigningKey,
  signExample,
} from '#platform/http/openapi.ts';
import type { Environment } from '#platform/shared/environment.ts';

const signedExample = signExample({
  checkout_id: '0199a8f2-31b4-7c05-8e6d-5f0a9b3c7e24',
  amount: 50000,
});

type About = { audience: Audience; baseUrl: string; environment: Environment };

/** The description of the whole API, which a developer reads before the endpoints. */
export function writeGuide(about: About, routes: DescribedRoute[]): string {
  return [
    introduction,
    writeStart(about),
    ...(about.audience === 'intermediaries' ? [actingForMerchants] : []),
    conventions,
    writeAuthentication(about),
    signature,
    idempotency,
    writeLimits(about, routes),
    pagination,
    errors,
  ].join('\n\n');
}

const introduction = `Tranche is a hosted checkout for shops that offer payment in instalments. Your server creates a checkout and sends the shopper to its payment page; the outcome comes back to you as one signed callback. From your side the order is paid in full when the checkout is \`successful\`.`;

const writeStart = ({ baseUrl, environment }: About) => `## Start

This is the **${environment}** environment. ${environment === 'sandbox' ? 'No real money moves here.' : 'Real money moves here.'} Every address begins with the base address:

\`\`\`
${baseUrl}
\`\`\`

Sandbox and production each have their own base address, client secret and signing key.

1. Create a checkout and keep its \`id\`.
2. Send the shopper's browser to its \`payment_url\`.
3. Receive the callback at your \`notify_url\`, verify its signature, fulfil the order.
4. Later, if need be, request a full or a partial refund.`;

const actingForMerchants = `## Acting for merchants

You have one set of credentials, and every request names the merchant.

- A checkout names its merchant in the signed body: \`checkout.merchant_id\`, required.
- Lists take the query parameter \`filter[merchant_id]\`, required.
- A checkout or a refund request is found by its own ID, and a new refund names its \`checkout_id\`.
- The configuration is read per merchant.

A merchant that you do not manage is a 404, as is one that does not exist.`;

const conventions = `## Conventions

| Topic | Rule |
|---|---|
| Amounts | Integers in cents: \`150000\` is R 1 500,00. A string is not an integer. |
| Currency | ISO 4217, and the currency of the merchant's territory: \`ZAR\`. |
| IDs | UUIDs. |
| Timestamps | ISO 8601, UTC. |
| Bodies | JSON in UTF-8, \`Content-Type: application/json\`, at most 256 KiB (a refund 16, a payment link 32). Unknown members are ignored. |
| Answers | \`data\` with \`id\`, \`type\` and \`attributes\`. Members may be added: ignore what you do not know. |
| Request ID | Every answer has \`X-Request-Id\`. Quote it when you ask for help. |`;

const writeAuthentication = ({ environment }: About) => `## Authentication

Every request carries the client secret of your integration:

\`\`\`
Authorization: Bearer cs_${environment}_…
\`\`\`

Without a valid one the answer is 401. The client secret and the signing key are secrets: keep them on your server, never in a page or an app. Your administrator rotates them in the console, or the operator does it for you.`;

const signature = `## Signature

Every POST carries the header \`X-Signature\`, and so does every callback that you receive.

\`\`\`
X-Signature = Base64( HMAC-SHA512( signing key, body ) )
\`\`\`

- The **key** is the whole text of the signing key as it was issued, prefix included. It is not the client secret.
- The **body** is the compact JSON text, without white space between its tokens. Serialise once, sign that exact string, send that same string.
- The value is **standard Base64**: 88 characters ending in \`=\`. Not hex (that has 128), not URL-safe.

We verify against your body with insignificant white space removed and nothing else changed: the order of members, the spelling of numbers and the escapes in strings stay as you sent them. A signature over pretty-printed text never matches.

Check your code with this example. The signing key

\`\`\`
${exampleSigningKey}
\`\`\`

and the body

\`\`\`
${signedExample.text}
\`\`\`

give the signature

\`\`\`
${signedExample.signature}
\`\`\`

In a shell:

\`\`\`sh
printf %s "$body" | openssl dgst -sha512 -hmac "$SIGNING_KEY" -binary | openssl base64 -A
\`\`\`

A wrong signature is answered with 400. The \`detail\` names the mistake if the service recognises it. It shows the expected signature if the body has only the members that the endpoint names.

Signing is optional at first and required in production. It is sticky: once one correctly signed request from your integration has been accepted, every later POST must be signed.

**Callbacks** are signed with the same key in the same way. Verify them over the raw bytes that you received, with a constant-time comparison, and reject what fails.`;

const idempotency = `## Idempotency

Every POST takes an \`Idempotency-Key\` header of 1 to 255 characters. The same key with the same body within 24 hours gives the first answer again, with \`Idempotent-Replayed: true\`, and nothing happens twice. The same key with another body is a 422. Successes are repeated, and so is a 422 that the body alone decides. After any other refusal the key is still free: a refund that came too early can be sent again with its key the next day.

Send one with every POST. After a timeout, send the same request again.`;

const writeLimits = ({ audience }: About, routes: DescribedRoute[]) => `## Limits

| Endpoint | Limit |
|---|---|
${routes.map(({ endpoint }) => `| \`${endpoint}\` | ${describeLimit(endpoint)} |`).join('\n')}

Limits count per integration and endpoint${audience === 'intermediaries' ? ' and, because you act for many, per merchant' : ''}. A window starts with its first request, and every authenticated request counts, whatever its answer. Beyond the limit the answer is 429 with this body; \`Retry-After\` says how many seconds are left. Every answer to a counted request says how much of the limit is left: \`RateLimit-Limit\`, \`RateLimit-Remaining\` and \`RateLimit-Reset\`, in seconds.

\`\`\`json
{"error":"Rate limit exceeded. Try again in 60 seconds."}
\`\`\``;

const pagination = `## Pagination

Lists take \`page[number]\` (from 1, default 1) and \`page[items]\` (default 10; more than 100 is treated as 100) and come newest first. \`links\` holds the addresses of the \`first\`, \`last\`, \`prev\` and \`next\` page; \`prev\` and \`next\` are null where there is none. Follow \`links.next\` until it is null.`;

const errors = `## Errors

Errors are \`{"errors": [{"status", "code", "title", "detail"}]}\`, one object per problem. Decide by \`status\` and \`code\`; read \`detail\`.

| Status | Code | Meaning |
|---|---|---|
| 400 | \`bad_request\` | Malformed request, signature mismatch, or an unsigned POST after signing became mandatory. |
| 401 | \`unauthorized\` | Missing or invalid Bearer token. |
| 404 | \`not_found\` | It does not exist, or it is not yours. |
| 422 | \`unprocessable_entity\` | Well-formed, but a field is not valid or a rule forbids it; \`detail\` says which. |
| 429 | none | Rate limited; see Limits. |
| 500 | \`internal_server_error\` | A fault on our side. Nothing was changed: retry with backoff. |
| 503 | \`service_unavailable\` | The database did not answer in time. Nothing was changed: retry after \`Retry-After\` seconds. |`;

export const tags = [
  {
    name: 'Checkouts',
    description: `A checkout is one order to be paid.

| Status | Meaning | What to do |
|---|---|---|
| \`received\` | Created; the shopper has not completed payment. A declined card or an abandoned page leaves it so. | Wait. |
| \`successful\` | Payment authorised: the order is paid. | Fulfil. |
| \`cancelled\` | The shopper cancelled. | Release the order. |
| \`invalid_payload\` | The checkout contained invalid data. | Create a new checkout. |

There is no \`failed\`.`,
  },
  {
    name: 'Payment links',
    description:
      'A payment link, or its QR code, makes a checkout when a shopper presses the button on its page. Its `status` is `active`, `paid`, `cancelled` or `expired`.',
  },
  {
    name: 'Refunds',
    description: `A refund is a request that is reviewed and then processed; poll its status.

| Status | Meaning |
|---|---|
| \`requested\` | Awaiting review. |
| \`pending\` | Approved, processing. |
| \`complete\` | Refund processed. |
| \`failed\` | Processing failed: contact support. |`,
  },
  {
    name: 'Payouts',
    description: 'What you are paid on each business day, and the lines that sum to it.',
  },
  { name: 'Configuration', description: 'Accepted amounts and instalment terms.' },
  { name: 'Callback', description: 'How a checkout ended. Sent to every integration.' },
  { name: 'Events', description: 'Changes to refunds, disputes and payouts, if you ask for them.' },
];
