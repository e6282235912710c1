/** Line icons on a grid of 20, drawn for the console. */
const paths = {
  overview: 'M3 10.5 10 4l7 6.5M5 9v7h10V9',
  checkouts: 'M5 3h10v14l-2.5-1.5L10 17l-2.5-1.5L5 17zM8 7h4M8 10.5h4',
  links: 'M3.5 3.5h5v5h-5zM11.5 3.5h5v5h-5zM3.5 11.5h5v5h-5zM11.5 11.5h2v2h-2zM16.5 11.5v5h-5',
  messages: 'M3.5 4.5h13v9H9l-3.5 3v-3h-2zM6.5 7.5h7M6.5 10.5h4.5',
  refunds: 'M7 5 3.5 8.5 7 12M4 8.5h8a4 4 0 0 1 0 8H9',
  overdue: 'M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14M10 6.5V10l2.5 2',
  callbacks: 'M3 10h11M10.5 6 14.5 10l-4 4M17 4v12',
  disputes: 'M10 3.5v13M4.5 6h11M4.5 6 2.5 11h4zM15.5 6l-2 5h4zM7 16.5h6',
  payouts: 'M3 8.5 10 4l7 4.5M4.5 8.5v6M8.2 8.5v6M11.8 8.5v6M15.5 8.5v6M3 16.5h14',
  statements: 'M5 3h10v14H5zM8 6.5h4M8 9.5h4M8 13h1M11 13h1',
  balance: 'M4 4h12v12H4zM7 8h6M7 12h3',
  money: 'M3 6h14v8H3zM10 8a2 2 0 1 0 0 4 2 2 0 0 0 0-4M5 8.5h.5M14.5 11.5h.5',
  reconciliation: 'M4 7h10.5M11.5 4l3 3-3 3M16 13H5.5M8.5 10l-3 3 3 3',
  merchants: 'M4 8v8h12V8M3 8l1.5-4h11L17 8zM8 16v-4h4v4',
  integrations: 'M8 3v4M12 3v4M6 7h8v3a4 4 0 0 1-8 0zM10 14v3',
  alerts:
    'M10 3.5a4.5 4.5 0 0 1 4.5 4.5c0 4 1.5 5 1.5 5H4s1.5-1 1.5-5A4.5 4.5 0 0 1 10 3.5M8.5 16h3',
  audit: 'M5 3h7l3 3v11H5zM12 3v3h3M8 10h4M8 13h4',
  people:
    'M7.5 9.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5M3 16c0-2.5 2-4 4.5-4s4.5 1.5 4.5 4M13 4.8a2.5 2.5 0 0 1 0 4.4M14 12.3c1.8.4 3 1.8 3 3.7',
  search: 'M9 3.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M13 13l4 4',
  menu: 'M3 6h14M3 10h14M3 14h14',
  back: 'M12 5l-5 5 5 5',
  next: 'M8 5l5 5-5 5',
  check: 'M4 10.5l4 4 8-9',
  cross: 'M5 5l10 10M15 5 5 15',
  warning: 'M10 3.5 17.5 16.5h-15zM10 8.5v3.5M10 14.3v.2',
  info: 'M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14M10 9.2v4M10 6.5v.2',
  lock: 'M5.5 9h9v7.5h-9zM7.5 9V6.5a2.5 2.5 0 0 1 5 0V9',
  key: 'M7 9.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7M9.5 10.5 16.5 3.5M13.5 6.5l2.5 2.5',
  copy: 'M7.5 7.5h9v9h-9zM12.5 7.5v-4h-9v9h4',
  download: 'M10 3v9M6 8.5 10 12.5l4-4M4 16.5h12',
  empty: 'M3.5 11.5 6 4.5h8l2.5 7v4.5h-13zM3.5 11.5h4c0 3 5 3 5 0h4',
  more: 'M5 10h.01M10 10h.01M15 10h.01',
  sun: 'M10 6.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7M10 2.5v1M10 16.5v1M2.5 10h1M16.5 10h1M4.7 4.7l.7.7M14.6 14.6l.7.7M15.3 4.7l-.7.7M5.4 14.6l-.7.7',
  moon: 'M16 11.5A6.5 6.5 0 0 1 8.5 4a6.5 6.5 0 1 0 7.5 7.5',
  leave: 'M8 3.5H4v13h4M8.5 10H17M13.5 6.5 17 10l-3.5 3.5',
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  );
}

/** Three bars, the first one filled: one payment made, two to come. */
export function Logo() {
  return (
    <svg className="logo" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect className="paid" x="4.25" y="5.25" width="5.5" height="21.5" rx="1.5" />
      <rect x="13.25" y="5.25" width="5.5" height="21.5" rx="1.5" />
      <rect x="22.25" y="5.25" width="5.5" height="21.5" rx="1.5" />
    </svg>
  );
}
