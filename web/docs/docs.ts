import { addSearch } from './search.ts';

// The pages are complete without this script. It adds copy buttons, tabs and search, and marks
// the chapter that the reader is in.

function all<T extends Element = HTMLElement>(selector: string): T[] {
  return [...document.querySelectorAll<T>(selector)];
}

for (const block of all('.code')) {
  const code = block.querySelector('code') as HTMLElement;
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = 'Copy';
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(code.textContent ?? '');
      button.textContent = 'Copied';
    } catch {
      getSelection()?.selectAllChildren(code);
      button.textContent = 'Selected';
    }
  });
  for (const leaving of ['blur', 'pointerleave']) {
    button.addEventListener(leaving, () => {
      button.textContent = 'Copy';
    });
  }
  block.append(button);
}

/** Turns consecutive figures into tabs. All tabs of a page follow the reader's last choice. */
const groups = all('.tabs').map((group, groupIndex) => {
  const figures = [...group.querySelectorAll<HTMLElement>('.code')];
  const list = document.createElement('div');
  list.setAttribute('role', 'tablist');
  list.setAttribute('aria-label', 'Language');
  const tabs = figures.map((figure, index) => {
    const caption = figure.querySelector('figcaption') as HTMLElement;
    const tab = document.createElement('button');
    tab.type = 'button';
    tab.id = `tab-${groupIndex}-${index}`;
    tab.textContent = caption.textContent;
    tab.setAttribute('role', 'tab');
    figure.id = `panel-${groupIndex}-${index}`;
    figure.setAttribute('role', 'tabpanel');
    figure.setAttribute('aria-labelledby', tab.id);
    tab.setAttribute('aria-controls', figure.id);
    caption.remove();
    tab.addEventListener('click', () => choose(tab.textContent ?? ''));
    return tab;
  });
  list.addEventListener('keydown', (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const at = tabs.indexOf(document.activeElement as HTMLButtonElement);
    const next = tabs.at((at + step) % tabs.length);
    next?.focus();
    choose(next?.textContent ?? '');
  });
  list.append(...tabs);
  group.prepend(list);
  return { tabs, figures };
});

function choose(language: string): void {
  for (const { tabs, figures } of groups) {
    const known = tabs.some((tab) => tab.textContent === language);
    for (const [index, tab] of tabs.entries()) {
      const isChosen = known ? tab.textContent === language : index === 0;
      tab.setAttribute('aria-selected', String(isChosen));
      tab.tabIndex = isChosen ? 0 : -1;
      (figures[index] as HTMLElement).hidden = !isChosen;
    }
  }
}
choose('');

const links = new Map(
  all<HTMLAnchorElement>('nav a[href^="#"], aside a[href^="#"]').map((link) => [
    link.hash.slice(1),
    link,
  ]),
);
const watcher = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      for (const link of links.values()) link.removeAttribute('aria-current');
      links.get(target.id)?.setAttribute('aria-current', 'true');
    }
  },
  { rootMargin: '-10% 0px -80% 0px' },
);
for (const id of links.keys()) {
  const target = document.getElementById(id);
  if (target) watcher.observe(target);
}

// On a phone the table of contents covers the top of the page, so choosing an entry closes it.
const contents = document.querySelector<HTMLDetailsElement>('nav details');
const isWide = matchMedia('(min-width: 900px)');
const arrange = () => {
  if (contents) contents.open = isWide.matches;
};
arrange();
isWide.addEventListener('change', arrange);
contents?.addEventListener('click', (event) => {
  const isLink = event.target instanceof Element && event.target.closest('a');
  if (isLink && !isWide.matches) contents.open = false;
});
contents?.querySelector('[aria-current="page"]')?.scrollIntoView({ block: 'nearest' });

addSearch(document.querySelector('header') as HTMLElement);
