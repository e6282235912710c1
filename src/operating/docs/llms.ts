import type { Guide } from './guides.ts';
import type { SdkArchive } from './sdk-archive.ts';

/** An index of the documentation for language models (llmstxt.org). */
export function writeLlms(baseUrl: string, guides: Guide[], sdk: SdkArchive): string {
  const guide = ({ title, path, summary }: Guide) =>
    `- [${title}](${baseUrl}${path}.md): ${summary}`;
  const groups = [...new Set(guides.map(({ group }) => group))];
  const of = (group: string) => guides.filter((one) => one.group === group).map(guide);
  return `# Tranche

> A shopper pays an order in monthly payments by card. The merchant's server creates a checkout over a signed JSON
> API, sends the shopper to its payment page, and receives one signed callback with the outcome.

${groups.map((group) => `## ${group}\n\n${of(group).join('\n')}\n`).join('\n')}
## Reference

- [OpenAPI description](${baseUrl}/docs/api/v2): every endpoint for merchants, with the callback
- [OpenAPI description for intermediaries](${baseUrl}/api-docs-intermediary): every endpoint for intermediaries
- [SDK for Node](${sdk.about.url}): \`npm install ${baseUrl}${sdk.latest}\`
- [Signature vectors](${baseUrl}/docs/signature-vectors.json): requests with the signatures that they must have
`;
}
