const names: Record<string, string> = {
  visa: 'Visa',
  mastercard: 'Mastercard',
  amex: 'American Express',
  diners: 'Diners Club',
  discover: 'Discover',
  jcb: 'JCB',
  unionpay: 'UnionPay',
};

/** A card brand as people write it. An unknown brand stays as the gateway writes it. */
export const brandName = (brand: string | null) => names[brand ?? ''] ?? (brand || '');
