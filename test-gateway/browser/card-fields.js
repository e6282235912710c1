// Reads, formats and checks what is typed into the card form. It is pure, so that it runs anywhere.

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

export const digitsOf = (text) => text.replace(/\D/g, '');
export const brandOf = (digits) => brands.find(({ pattern }) => pattern.test(digits)) ?? otherBrand;

// Each returns what is wrong with a field, or null.

export function numberProblem(text) {
  const digits = digitsOf(text);
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

export function expiryProblem(text) {
  const digits = digitsOf(text);
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

export function codeProblem(text, number) {
  const digits = digitsOf(text);
  const wanted = brandOf(digitsOf(number)).code;
  if (digits === '') return { code: 'incomplete_cvc', message: 'Enter the code.' };
  if (digits.length !== wanted) {
    return { code: 'incomplete_cvc', message: `It has ${wanted} digits.` };
  }
  return null;
}

function passesLuhn(digits) {
  let sum = 0;
  for (let i = 0; i < digits.length; i += 1) {
    const digit = Number(digits[digits.length - 1 - i]);
    const doubled = i % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

export function expiryOf(digits) {
  return { month: Number(digits.slice(0, 2)), year: 2000 + Number(digits.slice(2, 4)) };
}

export function formatNumber(text) {
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

export function formatExpiry(text, isDeleting) {
  // A browser's autofill may write the year with four digits, or before the month.
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
