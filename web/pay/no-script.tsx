/** Only the server's document contains this: a browser with scripts ignores it. */
export function NoScript({ text }: { text: string }) {
  const html = `<p class="notice warning">${text}</p>`;
  return <noscript dangerouslySetInnerHTML={{ __html: html }} />;
}
