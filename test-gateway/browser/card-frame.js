// The card form. What is typed here goes to this origin and nowhere else; the page that shows the
// frame learns whether the form is complete, and a token.
const parentOrigin = new URLSearchParams(location.search).get('parent') ?? '';
const root = document.getElementById('root');
const form = document.getElementById('card');
const number = document.getElementById('number');
const expiry = document.getElementById('expiry');
const code = document.getElementById('code');
const brandLabel = document.getElementById('brand');
let publishableKey = '';

const brands = [
  { name: 'Visa', pattern: /^4/, lengths: [16, 19], groups: [4, 4, 4, 4, 3], code: 3 },
  { name: 'Mastercard', pattern: /^(5[1-5]|2[2-7])/, lengths: [16], groups: [4, 4, 4, 4], code: 3 },
  { name: 'Amex', pattern: /^3[47]/, lengths: [15], groups: [4, 6, 5], code: 4 },
];
const otherBrand = {
  name: '',
  lengths: [12, 13, 14, 15, 16, 17, 18, 19],
  groups: [4, 4, 4, 4, 3],
  code: 3,
};

const digitsOf = (text) => text.replace(/\D/g, '');
const brandOf = (digits) => brands.find(({ pattern }) => pattern.test(digits)) ?? otherBrand;

function tellParent(message) {
  parent.postMessage(message, parentOrigin);
}

// What is wrong with a field, in words, or null.

function numberProblem() {
  const digits = digitsOf(number.value);
  if (digits === '') return { code: 'incomplete_number', message: 'Enter the card number.' };
  const { lengths } = brandOf(digits);
  if (digits.length < Math.min(...lengths)) {
    return { code: 'incomplete_number', message: 'The card number is not complete.' };
  }
  if (!lengths.includes(digits.length) || !passesLuhn(digits)) {
    return {
      code: 'invalid_number',
      message: 'This card number is not right.',
    };
  }
  return null;
}

function expiryProblem() {
  const digits = digitsOf(expiry.value);
  if (digits === '') return { code: 'incomplete_expiry', message: 'Enter the date.' };
  if (digits.length < 4) {
    return { code: 'incomplete_expiry', message: 'Enter it as MM / YY.' };
  }
  const { month, year } = expiryOf(digits);
  if (month < 1 || month > 12) {
    return { code: 'invalid_expiry_month', message: 'Check the month.' };
  }
  const today = new Date();
  const months = (year - today.getFullYear()) * 12 + month - 1 - today.getMonth();
  if (months < 0) return { code: 'invalid_expiry_year_past', message: 'It has expired.' };
  if (months > 50 * 12) return { code: 'invalid_expiry_year', message: 'Check the year.' };
  return null;
}

function codeProblem() {
  const digits = digitsOf(code.value);
  const wanted = brandOf(digitsOf(number.value)).code;
  if (digits === '') return { code: 'incomplete_cvc', message: 'Enter the code.' };
  if (digits.length !== wanted) {
    return { code: 'incomplete_cvc', message: `It has ${wanted} digits.` };
  }
  return null;
}

const fields = [
  { input: number, problem: numberProblem },
  { input: expiry, problem: expiryProblem },
  { input: code, problem: codeProblem },
];

function passesLuhn(digits) {
  let sum = 0;
  for (let i = 0; i < digits.length; i += 1) {
    const digit = Number(digits[digits.length - 1 - i]);
    const doubled = i % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

function expiryOf(digits) {
  return { month: Number(digits.slice(0, 2)), year: 2000 + Number(digits.slice(2, 4)) };
}

function show({ input }, problem) {
  document.getElementById(`${input.id}-error`).textContent = problem?.message ?? '';
  if (problem) input.setAttribute('aria-invalid', 'true');
  else input.removeAttribute('aria-invalid');
}

// Formatting while typing: the caret stays behind the digit that it stood behind.

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

function formatNumber(text) {
  const digits = digitsOf(text).slice(0, 19);
  const { groups, lengths } = brandOf(digits);
  let rest = digits.slice(0, Math.max(...lengths));
  const parts = [];
  for (const size of groups) {
    if (rest === '') break;
    parts.push(rest.slice(0, size));
    rest = rest.slice(size);
  }
  return parts.join(' ');
}

function formatExpiry(text, isDeleting) {
  // A browser that fills the form in may write the year in full, or first.
  const whole = /^\s*(\d{4})\D+(\d{1,2})\s*$/.exec(text);
  const inFull = /^\s*(\d{1,2})\D*20(\d{2})\s*$/.exec(text);
  let digits = digitsOf(text);
  if (whole) digits = whole[2].padStart(2, '0') + whole[1].slice(2);
  else if (inFull && digits.length > 4) digits = inFull[1].padStart(2, '0') + inFull[2];
  else if (/^[2-9]/.test(digits) || /^\d\s*\//.test(text)) digits = `0${digits}`;
  digits = digits.slice(0, 4);
  if (digits.length > 2 || (digits.length === 2 && !isDeleting)) {
    return (
      `${digits.slice(0, 2)} / ${digits.slice(2)}`.trimEnd() + (digits.length === 2 ? ' ' : '')
    );
  }
  return digits;
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
    // A message goes as soon as it is no longer true; it does not come while somebody types.
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

/** Shows everything that is wrong and leads to the first of it. */
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

async function createToken() {
  const error = check();
  if (error) return { error };
  const { month, year } = expiryOf(digitsOf(expiry.value));
  const body = new URLSearchParams({
    'payment_method_data[type]': 'card',
    'payment_method_data[card][number]': digitsOf(number.value),
    'payment_method_data[card][exp_month]': String(month),
    'payment_method_data[card][exp_year]': String(year),
    'payment_method_data[card][cvc]': digitsOf(code.value),
  });
  try {
    const response = await fetch('/v1/confirmation_tokens', {
      method: 'POST',
      headers: { Authorization: `Bearer ${publishableKey}` },
      body,
    });
    const answer = await response.json();
    if (response.ok) return { confirmationToken: { id: answer.id, object: answer.object } };
    return { error: refused(answer.error ?? {}) };
  } catch {
    return {
      error: {
        type: 'api_connection_error',
        message: 'The card could not be checked. Check your connection and try again.',
      },
    };
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

// Appearance: only values that are what they claim to be get in.

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
    case 'createToken':
      tellParent({ type: 'answer', id: message.id, answer: await createToken() });
      break;
  }
});

// Without a page around it that says who it is there is nobody to talk to.
if (parent !== window && /^https?:\/\/[^/]+$/.test(parentOrigin)) tellParent({ type: 'hello' });
