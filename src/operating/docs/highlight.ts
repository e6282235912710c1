import { escapeHtml } from '#platform/shared/html.ts';

// Patterns that find the comments, strings and keywords of each language. A wrong guess only costs
// a colour.

const comment: Record<string, string> = {
  hash: '#[^\\n]*',
  slash: '//[^\\n]*|/\\*[\\s\\S]*?\\*/',
};
const hashLanguages = ['sh', 'python', 'ruby'];
const strings = '"(?:[^"\\\\\\n]|\\\\.)*"|\'(?:[^\'\\\\\\n]|\\\\.)*\'|`(?:[^`\\\\]|\\\\.)*`';
const keywords = {
  sh: 'export|for|in|do|done|if|then|fi|while',
  python: 'import|from|as|def|return|with|if|not|in|for|raise|None|True|False|lambda|class',
  ruby: 'require|def|end|return|if|unless|do|nil|true|false|class|module',
  json: 'true|false|null',
  php: 'function|return|if|throw|new|use|echo|true|false|null|declare|namespace|string|bool|array',
  go: 'package|import|func|return|if|err|nil|var|const|type|struct|for|range|string|bool|byte',
  java: 'import|package|public|private|static|final|class|record|return|new|throws|throw|if|var|void|byte|boolean|String',
  csharp:
    'using|namespace|public|private|static|class|return|new|var|if|await|async|byte|bool|string',
  js: 'import|from|export|const|let|function|return|await|async|new|if|else|for|of|throw|try|catch|type|null|undefined|true|false',
} as const;
const aliases: Record<string, keyof typeof keywords> = {
  bash: 'sh',
  py: 'python',
  rb: 'ruby',
  cs: 'csharp',
  mjs: 'js',
  ts: 'js',
};

/** Escaped HTML, with comments, strings and keywords marked if the language is known. */
export function highlight(text: string, language: string): string {
  const name = aliases[language] ?? language;
  if (!(name in keywords)) return escapeHtml(text);
  const comments = hashLanguages.includes(name)
    ? `(?<![^\\s])${comment.hash}`
    : name === 'json'
      ? '(?!)'
      : comment.slash;
  const words = keywords[name as keyof typeof keywords];
  const token = new RegExp(`(${comments})|(${strings})|((?<![\\w.$-])(?:${words})(?![\\w-]))`, 'g');
  let html = '';
  let from = 0;
  for (const match of text.matchAll(token)) {
    const [whole, isComment, isString] = match;
    const kind = isComment ? 'c' : isString ? 's' : 'k';
    html += `${escapeHtml(text.slice(from, match.index))}<span class="${kind}">${escapeHtml(whole)}</span>`;
    from = match.index + whole.length;
  }
  return html + escapeHtml(text.slice(from));
}
