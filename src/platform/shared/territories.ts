/** A territory gives a merchant its currency and its local time (decision 0001). */
export type Territory = {
  code: string;
  currency: string;
  time_zone: string;
  locale: string;
  /** The smallest payment that the card gateway accepts, in cents (decision 0027). */
  payment_min: number;
};
