// Lists the messages, newest first, and shows the one in the address. New messages appear on their
// own, and the message being read stays open.

const find = (id) => document.getElementById(id);
const list = find('list');
const tabs = ['html', 'text', 'source'];
let messages = [];
/** The message that is being read. */
let shown = null;
/** The address by which the list was last filtered. */
let wanted = '';

const day = { day: 'numeric', month: 'short', year: 'numeric' };
const hour = { hour: '2-digit', minute: '2-digit', timeZoneName: 'short' };
const time = new Intl.DateTimeFormat('en-GB', { ...day, ...hour });

function row(message) {
  const item = document.createElement('li');
  const button = document.createElement('button');
  button.type = 'button';
  const subject = document.createElement('strong');
  subject.textContent = message.subject;
  const to = document.createElement('span');
  to.textContent = message.to;
  const sent = document.createElement('time');
  sent.dateTime = message.sent_at;
  sent.textContent = time.format(new Date(message.sent_at));
  button.append(subject, to, sent);
  button.addEventListener('click', () => {
    location.hash = message.id;
  });
  item.dataset.id = message.id;
  item.append(button);
  return item;
}

function refreshList() {
  const known = new Map([...list.children].map((item) => [item.dataset.id, item]));
  const items = messages.map((message) => known.get(message.id) ?? row(message));
  const focused = document.activeElement;
  if (items.length !== known.size || items.some((item, place) => item !== list.children[place])) {
    list.replaceChildren(...items);
    if (list.contains(focused)) focused.focus();
  }
  find('empty').hidden = wanted !== '' || messages.length > 0;
  find('none').hidden = wanted === '' || messages.length > 0;
}

function show() {
  const id = location.hash.slice(1);
  const message = shown?.id === id ? shown : messages.find((one) => one.id === id);
  document.body.classList.toggle('reading', message !== undefined);
  find('message').hidden = message === undefined;
  find('choose').hidden = message !== undefined;
  for (const item of list.children) {
    const button = item.firstElementChild;
    if (item.dataset.id === id) button.setAttribute('aria-current', 'true');
    else button.removeAttribute('aria-current');
  }
  if (message === undefined || shown === message) return;
  shown = message;
  find('subject').textContent = message.subject;
  find('to').textContent = message.to;
  find('from').textContent = message.from;
  find('sent').dateTime = message.sent_at;
  find('sent').textContent = time.format(new Date(message.sent_at));
  find('frame').src = `/messages/${id}/html`;
  find('shown-text').textContent = message.text;
  find('shown-source').textContent = message.html;
}

function choose(name) {
  for (const tab of tabs) {
    const isChosen = tab === name;
    find(`tab-${tab}`).setAttribute('aria-selected', String(isChosen));
    find(`tab-${tab}`).tabIndex = isChosen ? 0 : -1;
    find(`shown-${tab}`).hidden = !isChosen;
  }
}

for (const [index, tab] of tabs.entries()) {
  find(`tab-${tab}`).addEventListener('click', () => choose(tab));
  find(`tab-${tab}`).addEventListener('keydown', ({ key }) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (step === undefined) return;
    const next = tabs[(index + step + tabs.length) % tabs.length];
    choose(next);
    find(`tab-${next}`).focus();
  });
}
// A text that scrolls must be focusable, otherwise the keyboard cannot scroll it.
find('shown-text').tabIndex = 0;
find('shown-source').tabIndex = 0;
find('back').addEventListener('click', () => {
  location.hash = '';
});
find('filter').addEventListener('input', () => void read());
addEventListener('hashchange', show);

/** Reads the mails to addresses that contain what was typed, including old ones. */
async function read() {
  wanted = find('filter').value.trim();
  const asked = wanted;
  try {
    const response = await fetch(`/messages?to=${encodeURIComponent(asked)}`);
    const { data } = response.ok ? await response.json() : { data: messages };
    // The person has typed more since then, and an answer to that will follow.
    if (asked !== wanted) return;
    messages = data;
    refreshList();
    show();
  } catch {
    // The sandbox may be stopping. The list stays as it is, and the next round retries.
  }
}

async function refresh() {
  await read();
  setTimeout(refresh, document.hidden ? 10_000 : 2_000);
}
refresh();
