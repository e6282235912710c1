/** Three bars, the first one filled: one payment made, two to come. */
export function Logo() {
  return (
    <svg class="logo" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect class="paid" x="4.25" y="5.25" width="5.5" height="21.5" rx="1.5" />
      <rect x="13.25" y="5.25" width="5.5" height="21.5" rx="1.5" />
      <rect x="22.25" y="5.25" width="5.5" height="21.5" rx="1.5" />
    </svg>
  );
}
