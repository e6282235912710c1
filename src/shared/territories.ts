/** A territory gives a merchant its currency and what "local time" means (D3). */
export type Territory = {
  code: string;
  currency: string;
  time_zone: string;
  locale: string;
};
