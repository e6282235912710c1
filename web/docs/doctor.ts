import { type Diagnosis, diagnose, type Inputs } from './diagnose.ts';

// The doctor's page: reads the fields and shows the diagnosis.

const root = document.querySelector('.doctor') as HTMLElement;
const environment = root.dataset.environment ?? 'sandbox';
const output = document.getElementById('outcome') as HTMLElement;
const fields = Object.fromEntries(
  (['body', 'header', 'key', 'secret'] as const).map((name) => [
    name,
    document.getElementById(name),
  ]),
) as Record<keyof Inputs, HTMLTextAreaElement>;

let turn = 0;

async function update(): Promise<void> {
  turn += 1;
  const mine = turn;
  const inputs = Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [name, field.value]),
  ) as Inputs;
  const missing = (['body', 'header', 'key'] as const).filter((name) => inputs[name].trim() === '');
  if (missing.length > 0) {
    const names = missing.map(
      (name) => ({ body: 'the body', header: 'the header', key: 'the key' })[name],
    );
    output.replaceChildren(paragraph(`Still missing: ${names.join(', ')}.`, 'quiet'));
    return;
  }
  if (globalThis.crypto?.subtle === undefined) {
    output.replaceChildren(
      paragraph(
        'Your browser computes signatures only on https or on localhost: open this page there.',
      ),
    );
    return;
  }
  const found = await diagnose(inputs, environment);
  if (mine === turn) output.replaceChildren(...describe(found));
}

function describe(found: Diagnosis): Node[] {
  const { verdict, sentences, stray, given, expected, texts, keys } = found;
  const nodes: Node[] = [];
  if (verdict === 'right') {
    nodes.push(
      verdictLine(
        'right',
        stray.length === 0
          ? 'The signature is right.'
          : `The signature is right for the key as it was issued; what you pasted has ${stray.join(' and ')} around it.`,
      ),
    );
    if (stray.length > 0) {
      nodes.push(
        paragraph('If the key in your server’s settings has them too, remove them there.'),
      );
    }
    nodes.push(
      ...sentences.map((one) => paragraph(one)),
      ...(sentences.length + stray.length === 0
        ? [
            paragraph(
              'If your server still refuses it, your server verifies other bytes or uses another key: a framework may have parsed the body first.',
              'quiet',
            ),
          ]
        : []),
    );
  } else if (verdict === 'wrong') {
    const isOfThisKey = given === expected;
    nodes.push(
      verdictLine(
        'wrong',
        isOfThisKey
          ? 'The signature was made with the wrong key.'
          : 'The signature does not match.',
      ),
    );
    const list = element('ul', { class: 'mistakes' });
    list.append(...sentences.map((one) => element('li', {}, one)));
    nodes.push(list);
  } else {
    nodes.push(verdictLine('wrong', 'The signature does not match.'));
    nodes.push(
      paragraph(
        `The signature is well-formed, but it matches neither this body with this key nor any of ${found.tried} common mistakes. It was made with another key or over another body: compare these ${found.bodyBytes} bytes with what you signed, and the key with your server’s settings.`,
      ),
    );
  }
  if (texts) {
    const right = verdict === 'right' ? 'The body here' : 'What must be signed';
    nodes.push(comparison(['What was signed', right], [texts.signed, texts.right]));
  }
  if (keys)
    nodes.push(comparison(['The key that was used', 'The signing key'], [keys.used, keys.right]));
  if (given !== expected) {
    nodes.push(
      comparison(
        ['The header that you have', 'The header that is right'],
        [given, expected],
        false,
      ),
    );
  }
  return nodes;
}

const encoder = new TextEncoder();

type Piece = { text: string; differs: boolean };

/**
 * Finds where two texts differ. White space that only one of them has is a difference of its own,
 * so a pretty-printed body differs only in its spaces. From the first other difference on,
 * everything up to the common ending counts as different.
 */
function compare(first: string, second: string): [Piece[], Piece[]] {
  const sides: [Piece[], Piece[]] = [[], []];
  const add = (side: 0 | 1, text: string, differs: boolean) => {
    const last = sides[side].at(-1);
    if (text === '') return;
    if (last && last.differs === differs) last.text += text;
    else sides[side].push({ text, differs });
  };
  let a = 0;
  let b = 0;
  while (a < first.length && b < second.length) {
    const [one = '', other = ''] = [first[a], second[b]];
    if (one === other) {
      add(0, one, false);
      add(1, other, false);
      a += 1;
      b += 1;
    } else if (/\s/.test(one)) {
      add(0, one, true);
      a += 1;
    } else if (/\s/.test(other)) {
      add(1, other, true);
      b += 1;
    } else {
      break;
    }
  }
  const [restA, restB] = [first.slice(a), second.slice(b)];
  let end = 0;
  while (end < Math.min(restA.length, restB.length) && restA.at(-1 - end) === restB.at(-1 - end)) {
    end += 1;
  }
  for (const [side, rest] of [restA, restB].entries()) {
    add(side as 0 | 1, rest.slice(0, rest.length - end), true);
    add(side as 0 | 1, rest.slice(rest.length - end), false);
  }
  return sides;
}

const shown = 600;

/**
 * Shows two texts one above the other, with the differences marked and the offset of the first
 * different byte.
 */
function comparison(
  titles: [string, string],
  texts: [string, string],
  withBytes = true,
): HTMLElement {
  const list = element('dl', { class: 'comparison' });
  for (const [side, pieces] of compare(...texts).entries()) {
    const text = texts[side] as string;
    const size = encoder.encode(text).length;
    const code = element('code');
    let room = shown;
    for (const { text: piece, differs } of pieces) {
      const visibly = visible(piece.slice(0, room));
      code.append(differs ? element('mark', {}, visibly) : visibly);
      room -= piece.length;
      if (room <= 0) break;
    }
    if (room < 0) code.append(' …');
    if (pieces.length === 0) code.append('(nothing)');
    list.append(
      element('dt', {}, `${titles[side]} `, element('span', {}, `${size} bytes`)),
      element('dd', {}, code, ...(withBytes ? [firstBytes(texts, side)] : [])),
    );
  }
  return list;
}

function firstBytes(texts: [string, string], side: number): HTMLElement {
  const [first, second] = texts.map((text) => encoder.encode(text)) as [Uint8Array, Uint8Array];
  let at = 0;
  while (at < first.length && at < second.length && first[at] === second[at]) at += 1;
  const some = [...(side === 0 ? first : second).subarray(at, at + 8)];
  const hex = some.map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
  return element('span', { class: 'bytes' }, `from byte ${at}: ${hex === '' ? 'the end' : hex}`);
}

/** Makes white space visible. */
function visible(text: string): string {
  return text
    .replaceAll(' ', '·')
    .replaceAll('\t', '⇥')
    .replaceAll('\r', '␍')
    .replaceAll('\n', '↵');
}

function element(
  name: string,
  attributes: Record<string, string> = {},
  ...children: (Node | string)[]
): HTMLElement {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...children);
  return made;
}

function paragraph(text: string, className = ''): HTMLElement {
  return element('p', className === '' ? {} : { class: className }, text);
}

function verdictLine(kind: 'right' | 'wrong', text: string): HTMLElement {
  return element('p', { class: `verdict ${kind}` }, text);
}

const exampleKey = `sig_${environment}_an-example-key-0123456789abcdefghijk`;
const exampleBody = '{"checkout_id":"0199a8f2-31b4-7c05-8e6d-5f0a9b3c7e24","amount":50000}';

async function signExample(text: string): Promise<Uint8Array> {
  const name = { name: 'HMAC', hash: 'SHA-512' };
  const key = await crypto.subtle.importKey('raw', encoder.encode(exampleKey), name, false, [
    'sign',
  ]);
  return new Uint8Array(await crypto.subtle.sign('HMAC', key, encoder.encode(text)));
}
const base64 = (bytes: Uint8Array) => btoa(String.fromCharCode(...bytes));
const pretty = (text: string) => JSON.stringify(JSON.parse(text), null, 2);

const examples: [title: string, header: () => Promise<string>][] = [
  ['Right', async () => base64(await signExample(exampleBody))],
  [
    'Hex',
    async () =>
      [...(await signExample(exampleBody))]
        .map((byte) => byte.toString(16).padStart(2, '0'))
        .join(''),
  ],
  ['Pretty-printed', async () => base64(await signExample(pretty(exampleBody)))],
  ['Trailing newline', async () => base64(await signExample(`${exampleBody}\n`))],
];
for (const [title, header] of examples) {
  const button = element('button', { type: 'button' }, title);
  button.addEventListener('click', async () => {
    fields.body.value = exampleBody;
    fields.header.value = await header();
    fields.key.value = exampleKey;
    void update();
  });
  root.querySelector('.examples [role="group"]')?.append(button);
}

for (const field of Object.values(fields)) {
  field.addEventListener('input', () => void update());
}
fillFromFragment();

/**
 * The console opens this page with a refused request in the fragment of the address, which browsers
 * do not send. The fragment is removed, so that the history of the browser does not keep it.
 */
function fillFromFragment(): void {
  if (location.hash.length < 2) return;
  try {
    const given = JSON.parse(decodeURIComponent(location.hash.slice(1))) as Partial<Inputs>;
    for (const name of ['body', 'header'] as const) {
      if (typeof given[name] === 'string') fields[name].value = given[name];
    }
    history.replaceState(null, '', location.pathname);
    fields.key.focus();
  } catch {
    // The fragment is something else, such as the id of a heading.
  }
}

// A browser may restore what was typed before a reload, so the page updates at the start.
void update();
