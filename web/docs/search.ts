import type { Found } from '#operating/docs/search-entry.ts';

/** The entries that contain all the words, best match first. */
export function findEntries(index: Found[], query: string): Found[] {
  const words = query.toLowerCase().match(/[\p{L}\p{N}_{}/$.-]+/gu) ?? [];
  if (words.length === 0) return [];
  return index
    .map((entry) => ({ entry, score: score(entry, words) }))
    .filter((one) => one.score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, 10)
    .map((one) => one.entry);
}

function score({ title, page, text }: Found, words: string[]): number {
  const fields = [
    [title.toLowerCase(), 12],
    [page.toLowerCase(), 4],
    [text.toLowerCase(), 2],
  ] as const;
  let sum = 0;
  for (const word of words) {
    let best = 0;
    for (const [field, weight] of fields) {
      const at = field.indexOf(word);
      if (at < 0) continue;
      // A match at the beginning of a word scores higher than one in the middle.
      const isStart =
        at === 0 ||
        ` ${field}`.search(new RegExp(`[^\\p{L}\\p{N}]${escapeRegExp(word)}`, 'u')) >= 0;
      best = Math.max(best, isStart ? weight : weight / 4);
    }
    if (best === 0) return 0;
    sum += best;
  }
  // Adjacent words score higher, most of all at the beginning of an entry: `POST /api/refunds`.
  const phrase = words.join(' ');
  const spaced = (field: string) => field.toLowerCase().replace(/[-_]/g, ' ');
  if (spaced(text).startsWith(spaced(phrase))) return sum + 8;
  return spaced(`${title} ${text}`).includes(spaced(phrase)) ? sum + 3 : sum;
}

function escapeRegExp(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}

/** The dialog and what it shows. */
type Search = {
  dialog: HTMLDialogElement;
  input: HTMLInputElement;
  list: HTMLUListElement;
  status: HTMLElement;
  /** Whether the key `/` opens the dialog. */
  byKey: HTMLInputElement;
  /** Null until the dialog opens for the first time, and after the index could not be loaded. */
  index: Promise<Found[]> | null;
  /** How many times the index was requested. */
  loads: number;
  found: Found[];
  /** The place of the chosen entry in `found`. */
  chosen: number;
};

/** Adds a button to the page's head, and a dialog that works by keyboard. */
export function addSearch(header: HTMLElement): void {
  const button = createButton();
  header.querySelector('.parts')?.before(button);
  const search = createSearch();
  document.body.append(search.dialog);
  button.addEventListener('click', () => open(search));
  listenInDialog(search);
  listenForShortcuts(search, button.querySelector('kbd') as HTMLElement);
}

function createButton(): HTMLButtonElement {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'search-open';
  button.innerHTML = `<svg viewBox="0 0 20 20" width="18" height="18" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round"><circle cx="8.5" cy="8.5" r="5.5"/><path d="m13 13 4.5 4.5"/></svg><span>Search</span><kbd>/</kbd>`;
  button.setAttribute('aria-haspopup', 'dialog');
  return button;
}

function createSearch(): Search {
  const dialog = document.createElement('dialog');
  dialog.className = 'search';
  dialog.setAttribute('aria-label', 'Search the documentation');
  dialog.innerHTML = `<div class="search-box">
<input type="text" inputmode="search" enterkeyhint="go" role="combobox" aria-label="Search the documentation" aria-expanded="false" aria-controls="search-results" aria-autocomplete="list" autocomplete="off" spellcheck="false" placeholder="Search guides and reference">
<button type="button">Close</button></div>
<ul id="search-results" role="listbox" aria-label="Results"></ul>
<p class="quiet" role="status"></p>
<label class="quiet"><input type="checkbox"> Open with the key <kbd>/</kbd></label>`;
  return {
    dialog,
    input: dialog.querySelector('input') as HTMLInputElement,
    list: dialog.querySelector('ul') as HTMLUListElement,
    status: dialog.querySelector('p') as HTMLElement,
    byKey: dialog.querySelector('[type=checkbox]') as HTMLInputElement,
    index: null,
    loads: 0,
    found: [],
    chosen: 0,
  };
}

function listenInDialog(search: Search): void {
  const { dialog, input } = search;
  dialog.querySelector('button')?.addEventListener('click', () => dialog.close());
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog) dialog.close();
  });
  input.addEventListener('input', () => void update(search));
  input.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const count = search.found.length;
    if (step !== undefined && count > 0) {
      choose(search, (search.chosen + step + count) % count);
      event.preventDefault();
    } else if (event.key === 'Enter') {
      event.preventDefault();
      go(search);
    }
  });
}

const keyStoredAs = 'tranche-search-key';

/** Whether the reader turned the key off. A browser may refuse to store anything. */
function isKeyOff(): boolean {
  try {
    return localStorage.getItem(keyStoredAs) === 'off';
  } catch {
    return false;
  }
}

function storeKey(on: boolean): void {
  try {
    if (on) localStorage.removeItem(keyStoredAs);
    else localStorage.setItem(keyStoredAs, 'off');
  } catch {
    // The browser refuses to store the choice, so it only lasts until the reader leaves this page.
  }
}

function listenForShortcuts(search: Search, hint: HTMLElement): void {
  const { byKey } = search;
  byKey.checked = !isKeyOff();
  hint.hidden = !byKey.checked;
  byKey.addEventListener('change', () => {
    hint.hidden = !byKey.checked;
    storeKey(byKey.checked);
  });
  document.addEventListener('keydown', (event) => {
    // The field of a dialog that was just closed keeps the focus until the next frame.
    const isTyping =
      event.target instanceof HTMLElement &&
      event.target.checkVisibility() &&
      event.target.closest('input, textarea, select');
    const isSlash =
      event.key === '/' && byKey.checked && !isTyping && !event.ctrlKey && !event.metaKey;
    const isK = event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey);
    if (!isSlash && !isK) return;
    event.preventDefault();
    open(search);
  });
}

function open(search: Search): void {
  if (search.dialog.open) return;
  search.dialog.showModal();
  search.input.select();
  void update(search);
}

/**
 * The index is loaded as a script, because the page's policy allows no fetch, not even from this
 * server. After a failure a browser may not request the same address again, so each attempt to load
 * the index has another fragment.
 */
function load(search: Search): Promise<Found[]> {
  const path = `${document.body.dataset.search}#${search.loads}`;
  search.loads += 1;
  return import(/* @vite-ignore */ path).then((module: { default: Found[] }) => module.default);
}

/** Shows the entries for the words in the field. */
async function update(search: Search): Promise<void> {
  const { input, list, status } = search;
  const query = input.value;
  search.index ??= load(search);
  const entries = await search.index.catch(() => null);
  if (entries === null) {
    search.index = null;
    status.textContent = 'The search could not be loaded. Type to try again.';
    return;
  }
  if (query !== input.value) return;
  const found = findEntries(entries, query);
  search.found = found;
  list.replaceChildren(...found.map((entry, at) => createOption(search, entry, at, query)));
  input.setAttribute('aria-expanded', String(found.length > 0));
  status.textContent =
    query.trim() === ''
      ? 'Search titles, errors, fields and commands.'
      : found.length === 0
        ? 'Nothing was found. Try fewer or other words.'
        : '';
  choose(search, 0);
}

function createOption(search: Search, entry: Found, at: number, query: string): HTMLElement {
  const item = document.createElement('li');
  item.setAttribute('role', 'option');
  item.id = `search-result-${at}`;
  const title = document.createElement('strong');
  title.textContent = entry.title;
  const page = document.createElement('span');
  page.className = 'result-page';
  page.textContent = entry.page === entry.title ? 'Guide' : entry.page;
  const text = document.createElement('p');
  text.className = 'result-text';
  text.append(...excerpt(entry.text, query));
  item.append(title, page, text);
  item.addEventListener('click', () => {
    search.chosen = at;
    go(search);
  });
  item.addEventListener('pointermove', () => choose(search, at));
  return item;
}

function choose(search: Search, chosen: number): void {
  const { input, list, found } = search;
  search.chosen = chosen;
  for (const [at, item] of [...list.children].entries()) {
    item.setAttribute('aria-selected', String(at === chosen));
    if (at === chosen) item.scrollIntoView({ block: 'nearest' });
  }
  if (found.length > 0) input.setAttribute('aria-activedescendant', `search-result-${chosen}`);
  else input.removeAttribute('aria-activedescendant');
}

/** Opens the page of the chosen entry. */
function go({ dialog, found, chosen }: Search): void {
  const entry = found[chosen];
  if (!entry) return;
  dialog.close();
  location.assign(entry.path);
}

/** Some text around the first match, with the matches marked. */
function excerpt(text: string, query: string): (Node | string)[] {
  const words = query.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
  const at = Math.min(
    ...words.map((word) => text.toLowerCase().indexOf(word)).filter((one) => one >= 0),
    text.length,
  );
  const from =
    at === text.length ? 0 : Math.max(0, text.lastIndexOf(' ', Math.max(0, at - 40)) + 1);
  const cut = text.slice(from, from + 130);
  const isWhole = from + 130 >= text.length;
  const piece = `${from > 0 ? '… ' : ''}${isWhole ? cut : cut.replace(/\s+\S*$/, ' …')}`;
  if (words.length === 0) return [piece];
  const parts = piece.split(new RegExp(`(${words.map(escapeRegExp).join('|')})`, 'iu'));
  return parts.map((part, index) => {
    if (index % 2 === 0) return part;
    const mark = document.createElement('mark');
    mark.textContent = part;
    return mark;
  });
}
