// The card form. What is typed here goes only to this origin. The page that shows the frame only
// learns whether the form is complete, and gets a token.
import {
  brandOf,
  codeProblem,
  digitsOf,
  expiryOf,
  expiryProblem,
  formatExpiry,
  formatNumber,
  numberProblem,
} from './card-fields.js';

const parentOrigin = new URLSearchParams(location.search).get('parent') ?? '';
const root = document.getElementById('root');
const form = document.getElementById('card');
const number = document.getElementById('number');
const expiry = document.getElementById('expiry');
const code = document.getElementById('code');
const brandLabel = document.getElementById('brand');
let publishableKey = '';

function tellParent(message) {
  parent.postMessage(message, parentOrigin);
}

const fields = [
  { input: number, problem: () => numberProblem(number.value) },
  { input: expiry, problem: () => expiryProblem(expiry.value) },
  { input: code, problem: () => codeProblem(code.value, number.value) },
];

function show({ input }, problem) {
  document.getElementById(`${input.id}-error`).textContent = problem?.message ?? '';
  if (problem) input.setAttribute('aria-invalid', 'true');
  else input.removeAttribute('aria-invalid');
}

// Formats while the shopper types. The caret stays after the same digit.

function reformat(input, format) {
  const caret = input.selectionStart ?? input.value.length;
  const before = digitsOf(input.value.slice(0, caret)).length;
  const atEnd = caret === input.value.length;
  const next = format(input.value);
  if (next === input.value) return;
  input.value = next;
  let position = next.length;
  if (!atEnd) {
    position = 0;
    for (let seen = 0; seen < before && position < next.length; position += 1) {
      if (/\d/.test(next[position])) seen += 1;
    }
  }
  if (document.activeElement === input) input.setSelectionRange(position, position);
}

number.addEventListener('input', () => {
  reformat(number, formatNumber);
  brandLabel.textContent = brandOf(digitsOf(number.value)).name;
  code.placeholder = '1234'.slice(0, brandOf(digitsOf(number.value)).code);
});
expiry.addEventListener('input', (event) => {
  const isDeleting = event.inputType?.startsWith('delete') ?? false;
  reformat(expiry, (text) => formatExpiry(text, isDeleting));
});
code.addEventListener('input', () => {
  reformat(code, (text) => digitsOf(text).slice(0, 4));
});

let lastChange = '';

function tellChange() {
  const complete = fields.every(({ problem }) => problem() === null);
  const empty = fields.every(({ input }) => input.value === '');
  const change = `${complete} ${empty}`;
  if (change === lastChange) return;
  lastChange = change;
  tellParent({ type: 'change', complete, empty });
}

for (const field of fields) {
  field.input.addEventListener('input', () => {
    // A message disappears as soon as it is out of date, and none appears while the shopper types.
    if (field.input.hasAttribute('aria-invalid') && field.problem() === null) show(field, null);
    tellChange();
  });
  field.input.addEventListener('blur', () => {
    if (field.input.value !== '') show(field, field.problem());
  });
}
form.addEventListener('focusin', () => tellParent({ type: 'focus' }));
form.addEventListener('focusout', () => tellParent({ type: 'blur' }));
form.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter') return;
  event.preventDefault();
  tellParent({ type: 'enter' });
});
form.addEventListener('submit', (event) => event.preventDefault());

/** Shows every problem and focuses the first field that has one. */
function check() {
  let first = null;
  for (const field of fields) {
    const problem = field.problem();
    show(field, problem);
    if (problem && first === null) first = { input: field.input, problem };
  }
  if (first === null) return null;
  first.input.focus();
  return { type: 'validation_error', ...first.problem };
}

const fieldOfParam = { number: 0, exp_month: 1, exp_year: 1, cvc: 2 };

/** The card as it was typed, or the problem that is shown. */
function readCard() {
  const error = check();
  if (error) return { error };
  const { month, year } = expiryOf(digitsOf(expiry.value));
  return {
    card: { number: digitsOf(number.value), month, year, code: digitsOf(code.value) },
  };
}

async function createToken() {
  const { error, card } = readCard();
  if (error) return { error };
  const body = new URLSearchParams({
    'payment_method_data[type]': 'card',
    'payment_method_data[card][number]': card.number,
    'payment_method_data[card][exp_month]': String(card.month),
    'payment_method_data[card][exp_year]': String(card.year),
    'payment_method_data[card][cvc]': card.code,
  });
  const headers = { Authorization: `Bearer ${publishableKey}` };
  const { answer, failed } = await post('/v1/confirmation_tokens', headers, body);
  if (failed) return { error: failed };
  if (answer.error) return { error: refused(answer.error) };
  return { confirmationToken: { id: answer.id, object: answer.object } };
}

/** Confirms a payment in the other protocol. The page learns its status and where to go next. */
async function confirmPayment({ clientSecret, returnUrl }) {
  const { error, card } = readCard();
  if (error) return { error };
  const body = JSON.stringify({
    client_secret: clientSecret,
    return_url: returnUrl,
    payment_method: 'card',
    payment_method_type: 'credit',
    payment_method_data: {
      card: {
        card_number: card.number,
        card_exp_month: String(card.month).padStart(2, '0'),
        card_exp_year: String(card.year),
        card_holder_name: '',
        card_cvc: card.code,
      },
    },
    customer_acceptance: {
      acceptance_type: 'online',
      accepted_at: new Date().toISOString(),
      online: { ip_address: '127.0.0.1', user_agent: navigator.userAgent },
    },
    browser_info: {
      color_depth: screen.colorDepth,
      java_enabled: false,
      java_script_enabled: true,
      language: navigator.language,
      screen_height: screen.height,
      screen_width: screen.width,
      time_zone: new Date().getTimezoneOffset(),
      user_agent: navigator.userAgent,
    },
  });
  const id = clientSecret.split('_secret_')[0];
  const headers = { 'api-key': publishableKey, 'content-type': 'application/json' };
  const { answer, failed } = await post(`/payments/${id}/confirm`, headers, body);
  if (failed) return { error: failed };
  if (answer.error) return { error: refused(unread(answer.error)) };
  const { payment_id, status, next_action } = answer;
  return { payment: { payment_id, status, next_action } };
}

/** Hyperswitch names the field in its message about a card that it cannot read. */
function unread({ type, error_type, code: errorCode, message = '' }) {
  const [param, words] = message.split(': ');
  return {
    type: type ?? error_type,
    code: errorCode,
    ...(param in fieldOfParam && { param }),
    ...(words?.includes('non test card') && { decline_code: 'test_mode_live_card' }),
  };
}

async function post(path, headers, body) {
  try {
    const response = await fetch(path, { method: 'POST', headers, body });
    return { answer: await response.json() };
  } catch {
    const message = 'The card could not be checked. Check your connection and try again.';
    return { failed: { type: 'api_connection_error', message } };
  }
}

function refused({ type, code: errorCode, decline_code, param }) {
  const field = fields[fieldOfParam[param]];
  const message =
    decline_code === 'test_mode_live_card'
      ? 'Only test cards work here.'
      : field
        ? 'Check the card details: the bank did not recognise them.'
        : 'The card could not be checked. Try again.';
  if (field) {
    show(field, { message });
    field.input.focus();
  }
  return { type: type ?? 'api_error', code: errorCode, decline_code, message };
}

// Appearance: a value is applied only if it is valid for its property.

const variables = {
  colorPrimary: ['--primary', 'color'],
  colorBackground: ['--background', 'color'],
  colorText: ['--text', 'color'],
  colorTextSecondary: ['--quiet', 'color'],
  colorDanger: ['--danger', 'color'],
  borderRadius: ['--radius', 'border-radius'],
  fontFamily: ['--font', 'font-family'],
};

function dress(appearance) {
  const { style } = document.documentElement;
  if (appearance?.theme) {
    style.colorScheme = appearance.theme === 'night' ? 'dark' : 'light';
  }
  for (const [name, value] of Object.entries(appearance?.variables ?? {})) {
    const [property, kind] = variables[name] ?? [];
    if (property && typeof value === 'string' && CSS.supports(kind, value)) {
      style.setProperty(property, value);
    }
  }
}

function setReadOnly(readOnly) {
  if (typeof readOnly !== 'boolean') return;
  for (const { input } of fields) input.readOnly = readOnly;
}

addEventListener('message', async (event) => {
  if (event.source !== parent || event.origin !== parentOrigin) return;
  const message = event.data ?? {};
  switch (message.type) {
    case 'init':
      publishableKey = String(message.key ?? '');
      dress(message.appearance);
      setReadOnly(message.readOnly);
      new ResizeObserver(() => {
        tellParent({ type: 'height', height: root.offsetHeight });
      }).observe(root);
      tellParent({ type: 'ready' });
      break;
    case 'update':
      dress(message.appearance);
      setReadOnly(message.readOnly);
      break;
    case 'focus':
      number.focus();
      break;
    case 'clear':
      form.reset();
      brandLabel.textContent = '';
      for (const field of fields) show(field, null);
      tellChange();
      break;
    case 'submit': {
      const error = check();
      tellParent({ type: 'answer', id: message.id, answer: error ? { error } : {} });
      break;
    }
    case 'confirm':
      tellParent({ type: 'answer', id: message.id, answer: await confirmPayment(message) });
      break;
    case 'createToken':
      tellParent({ type: 'answer', id: message.id, answer: await createToken() });
      break;
  }
});

// The frame talks only to a page that stated its origin.
if (parent !== window && /^https?:\/\/[^/]+$/.test(parentOrigin)) tellParent({ type: 'hello' });
