// The products. Amounts are in cents. The pictures are inline SVG, so nothing is loaded from
// another origin.

export const products = [
  {
    id: 'boots',
    name: 'Tankwa hiking boots',
    amount: 189_900,
    about: 'Full-grain leather that softens by the second hill. Resoled for free, once.',
    ground: 'sand',
    picture: `
      <path d="M0 150h240v30H0z" fill="#E3CFAE"/>
      <ellipse cx="128" cy="159" rx="92" ry="7" fill="#C9AE85"/>
      <g transform="translate(26 -4)">
        <path d="M70 40h42l3 52c14 8 38 12 52 22 8 6 11 14 11 22H66z" fill="#8C4A2F"/>
        <path d="M62 134h118v10a6 6 0 0 1-6 6H68a6 6 0 0 1-6-6z" fill="#1E1815"/>
        <rect x="66" y="32" width="50" height="15" rx="7" fill="#B97F22"/>
      </g>
      <path d="M58 42h48l3 60c15 8 40 12 54 22 8 6 11 12 11 22H54z" fill="#C06A41"/>
      <path d="M109 102c15 8 40 12 54 22 8 6 11 12 11 22h-30c-8-20-26-28-38-30z" fill="#A95430"/>
      <path d="M54 134c20 3 38 4 50 4v8H54z" fill="#A95430"/>
      <path d="M50 144h128v10a6 6 0 0 1-6 6H56a6 6 0 0 1-6-6z" fill="#2B2320"/>
      <path d="M50 144h128v5H50z" fill="#F3E4CC"/>
      <rect x="53" y="32" width="58" height="17" rx="8" fill="#E0A63C"/>
      <path d="m84 62 22 5m-22 9 23 5m-22 9 24 6" stroke="#F6EAD6" stroke-width="4" stroke-linecap="round"/>
      <g fill="#2B2320"><circle cx="84" cy="62" r="3"/><circle cx="84" cy="76" r="3"/><circle cx="85" cy="90" r="3"/></g>`,
  },
  {
    id: 'tent',
    name: 'Two-person tent',
    amount: 345_000,
    about: 'Up in four minutes, quiet in the south-easter, 2.1 kg in the bag.',
    ground: 'dusk',
    picture: `
      <circle cx="186" cy="44" r="17" fill="#F3DFA8"/>
      <circle cx="40" cy="30" r="1.6" fill="#fff"/><circle cx="92" cy="22" r="1.6" fill="#fff"/><circle cx="138" cy="38" r="1.6" fill="#fff"/><circle cx="64" cy="54" r="1.6" fill="#fff"/>
      <path d="M0 118c36-20 62-22 92-8 34-26 74-30 148-4v74H0z" fill="#31555A"/>
      <path d="M0 144h240v36H0z" fill="#24403F"/>
      <path d="m120 58 74 94H46z" fill="#E0A63C"/>
      <path d="m120 58 74 94h-42z" fill="#C8862E"/>
      <path d="m120 58 20 94h-40z" fill="#7A3F28"/>
      <path d="m120 58-20 94h-8z" fill="#F6D48A"/>
      <path d="M120 58v-10" stroke="#F6EAD6" stroke-width="3" stroke-linecap="round"/>
      <path d="m46 152-18 8m166-8 18 8" stroke="#F6EAD6" stroke-width="2.5" stroke-linecap="round"/>`,
  },
  {
    id: 'pack',
    name: 'Backpack, 38 litres',
    amount: 219_600,
    about: 'Waxed canvas, a frame that breathes, and one pocket too many.',
    ground: 'sage',
    picture: `
      <ellipse cx="120" cy="158" rx="62" ry="6" fill="#A9B795"/>
      <path d="M98 40c0-28 44-28 44 0" fill="none" stroke="#3E4A32" stroke-width="7"/>
      <rect x="70" y="36" width="100" height="120" rx="26" fill="#6E7F4F"/>
      <rect x="56" y="88" width="22" height="54" rx="10" fill="#5A6A40"/>
      <rect x="162" y="88" width="22" height="54" rx="10" fill="#5A6A40"/>
      <path d="M70 62a26 26 0 0 1 26-26h48a26 26 0 0 1 26 26v18c-28 12-72 12-100 0z" fill="#7F9160"/>
      <rect x="84" y="100" width="72" height="44" rx="12" fill="#5A6A40"/>
      <path d="M84 114h72" stroke="#3E4A32" stroke-width="3"/>
      <path d="M92 76v28m56-28v28" stroke="#C8862E" stroke-width="7"/>
      <rect x="87" y="92" width="10" height="10" rx="2" fill="#F3DFA8"/><rect x="143" y="92" width="10" height="10" rx="2" fill="#F3DFA8"/>
      <rect x="112" y="52" width="16" height="10" rx="2" fill="#F6EAD6"/>`,
  },
  {
    id: 'blanket',
    name: 'Mohair blanket',
    amount: 124_800,
    about: 'Woven in Graaff-Reinet from the neighbour’s goats. Warm from the first evening.',
    ground: 'rose',
    picture: `
      <ellipse cx="120" cy="156" rx="84" ry="6" fill="#DDB7A4"/>
      <rect x="44" y="118" width="152" height="34" rx="15" fill="#8C4A2F"/>
      <rect x="44" y="92" width="152" height="34" rx="15" fill="#C8623A"/>
      <rect x="44" y="66" width="152" height="34" rx="15" fill="#E0A63C"/>
      <rect x="44" y="40" width="152" height="34" rx="15" fill="#F6EAD6"/>
      <path d="M78 40v34m12-34v34m60-34v34m12-34v34" stroke="#0B6B5F" stroke-width="4"/>
      <path d="M78 66v34m12-34v34m60-34v34m12-34v34" stroke="#B97F22" stroke-width="4"/>
      <path d="M78 92v34m12-34v34m60-34v34m12-34v34" stroke="#A44C2A" stroke-width="4"/>
      <path d="M78 118v34m12-34v34m60-34v34m12-34v34" stroke="#703921" stroke-width="4"/>
      <path d="M59 40h122" stroke="#fff" stroke-width="3" stroke-linecap="round"/>`,
  },
  {
    id: 'kettle',
    name: 'Campfire kettle',
    amount: 89_700,
    about: 'Hard-anodised, a spout that does not drip, and a handle that stays cool.',
    ground: 'sky',
    picture: `
      <path d="M86 150c8-20 24-6 30-24 8 14 26 8 38 24z" fill="#E0A63C"/>
      <path d="M98 150c6-12 14-4 20-16 6 10 16 6 24 16z" fill="#C8623A"/>
      <path d="m70 158 100-10m-100-2 100 12" stroke="#703921" stroke-width="9" stroke-linecap="round"/>
      <path d="M78 62c0-44 84-44 84 0" fill="none" stroke="#2B2320" stroke-width="7" stroke-linecap="round"/>
      <path d="M168 78c14 0 20-12 34-12l-6 14c-10 4-14 22-28 26z" fill="#0A5A50"/>
      <path d="M72 72h96c8 20 8 38-4 54H76c-12-16-12-34-4-54z" fill="#0B6B5F"/>
      <path d="M72 72h96l3 10H69z" fill="#0A5A50"/>
      <rect x="88" y="58" width="64" height="14" rx="7" fill="#14897A"/>
      <circle cx="120" cy="54" r="6" fill="#E0A63C"/>
      <path d="M84 92c-4 10-3 18 1 26" stroke="#5FD3BF" stroke-width="4" stroke-linecap="round" fill="none"/>`,
  },
  {
    id: 'lamp',
    name: 'Headlamp',
    amount: 44_700,
    about: '350 lumens to find the path, red light to keep the stars.',
    ground: 'night',
    picture: `
      <path d="M128 92 240 34v116z" fill="#F3DFA8" opacity=".28"/>
      <path d="M128 92 240 62v60z" fill="#F3DFA8" opacity=".4"/>
      <circle cx="34" cy="36" r="1.6" fill="#fff"/><circle cx="70" cy="22" r="1.6" fill="#fff"/><circle cx="118" cy="30" r="1.6" fill="#fff"/><circle cx="24" cy="78" r="1.6" fill="#fff"/><circle cx="52" cy="146" r="1.6" fill="#fff"/>
      <path d="M38 66c0-16 20-22 46-22v18c-16 0-26 2-26 8v44c0 6 10 8 26 8v18c-26 0-46-6-46-22z" fill="#C8623A"/>
      <path d="M44 92h14" stroke="#F6EAD6" stroke-width="4"/>
      <rect x="76" y="50" width="46" height="84" rx="16" fill="#3C4A49"/>
      <rect x="84" y="58" width="30" height="68" rx="11" fill="#55686A"/>
      <circle cx="112" cy="92" r="24" fill="#E8EFED"/>
      <circle cx="112" cy="92" r="16" fill="#F3DFA8"/>
      <circle cx="112" cy="92" r="7" fill="#fff"/>
      <circle cx="92" cy="118" r="4" fill="#E5533D"/>`,
  },
  {
    id: 'flask',
    name: 'Steel flask, 1 litre',
    amount: 38_400,
    about: 'Rooibos still hot at the top. Dents are yours to keep.',
    ground: 'sand',
    picture: `
      <path d="M0 152h240v28H0z" fill="#E3CFAE"/>
      <ellipse cx="120" cy="155" rx="56" ry="6" fill="#C9AE85"/>
      <rect x="88" y="58" width="64" height="98" rx="14" fill="#31555A"/>
      <path d="M88 84h64v44H88z" fill="#3E6A70"/>
      <path d="M98 58c0-12 6-14 6-22h32c0 8 6 10 6 22z" fill="#B9C6C3"/>
      <rect x="100" y="20" width="40" height="22" rx="6" fill="#2B2320"/>
      <path d="M140 28c20-2 20 26 4 28" fill="none" stroke="#2B2320" stroke-width="5"/>
      <path d="m96 122 14-20 8 10 10-16 16 26z" fill="#F3DFA8"/>
      <path d="M97 70v72" stroke="#7FA4A6" stroke-width="4" stroke-linecap="round"/>`,
  },
  {
    id: 'mug',
    name: 'Enamel mug',
    amount: 14_700,
    about: 'Chips with character. Holds two sips more than you think.',
    ground: 'sage',
    picture: `
      <ellipse cx="114" cy="154" rx="58" ry="6" fill="#A9B795"/>
      <path d="M96 46c-8-8 6-12 0-22m22 22c-8-8 6-12 0-22m22 22c-8-8 6-12 0-22" fill="none" stroke="#fff" stroke-width="4" stroke-linecap="round" opacity=".8"/>
      <path d="M162 80c38-8 38 50-2 46" fill="none" stroke="#F6EAD6" stroke-width="12"/>
      <path d="M162 80c38-8 38 50-2 46" fill="none" stroke="#31555A" stroke-width="3"/>
      <path d="M66 60h100l-6 84a10 10 0 0 1-10 10H82a10 10 0 0 1-10-10z" fill="#F6EAD6"/>
      <path d="M66 60h100l-1 12H67z" fill="#31555A"/>
      <path d="m86 132 16-24 10 12 12-20 20 32z" fill="#C8623A"/>
      <circle cx="138" cy="94" r="7" fill="#E0A63C"/>`,
  },
];
