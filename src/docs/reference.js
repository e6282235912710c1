// The page is complete without this script: it adds the copy buttons and marks where the reader is.

for (const block of document.querySelectorAll('.code')) {
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = 'Copy';
  button.addEventListener('click', async () => {
    const text = block.querySelector('code').textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'Copied';
    } catch {
      getSelection().selectAllChildren(block.querySelector('code'));
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

const links = new Map(
  [...document.querySelectorAll('nav a[href^="#"]')].map((link) => [link.hash.slice(1), link]),
);
const watcher = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      for (const link of links.values()) link.removeAttribute('aria-current');
      links.get(target.id).setAttribute('aria-current', 'true');
    }
  },
  { rootMargin: '-10% 0px -80% 0px' },
);
for (const id of links.keys()) {
  const target = document.getElementById(id);
  if (target) watcher.observe(target);
}

// On a phone the contents lie above the text: choosing from them closes them.
const contents = document.querySelector('nav details');
const isWide = matchMedia('(min-width: 900px)');
const arrange = () => {
  contents.open = isWide.matches;
};
arrange();
isWide.addEventListener('change', arrange);
contents.addEventListener('click', (event) => {
  if (event.target.closest('a') && !isWide.matches) contents.open = false;
});
