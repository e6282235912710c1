/**
 * Which files may import which; CONTRIBUTING.md says why. `scripts/check-rooms.ts` adds the rules
 * about folders.
 */
const nouns =
  '^src/(gateway/(amount-refused|capabilities|evidence|gateway|gateway-name|retry-times)|merchants/(merchant|integrations/integration)|operating/(bulk-actions/bulk-action|people/person-mail)|' +
  'record/(actions/free-text|ledger/(posting|settlement))|purchases/(callbacks/callback|checkouts/checkout|conversations/conversation|disputes/(dispute|supplied)|' +
  'instalments/instalment|legacy/legacy-credential|messages/(merchant-mail|message)|payment-links/payment-link|payments/payment-attempt|' +
  'payouts/(bank-account|monthly-statement|payout|statement-mail)|refunds/refund|shoppers/(plan|plan-attempt)))[.]ts$';

module.exports = {
  forbidden: [
    {
      name: 'no-cycles',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'shared-is-the-ground',
      comment: 'Every room may use it, so it uses no other room.',
      severity: 'error',
      from: { path: '^src/platform/shared/' },
      to: { path: '^src/', pathNot: '^src/platform/shared/' },
    },
    {
      name: 'nouns-are-pure',
      comment: 'Types, statuses and rules: no I/O, and nothing above them.',
      severity: 'error',
      from: { path: nouns },
      // A noun may derive its type from its table's.
      to: {
        path: '^src/',
        pathNot: ['^src/platform/shared/', '^src/platform/database/tables[.]ts$', nouns],
      },
    },
    {
      name: 'sql-knows-nouns-and-database',
      comment: 'One function per statement; no rule, no request.',
      severity: 'error',
      from: { path: '[.](sql|tables)[.]ts$', pathNot: '^src/platform/http/' },
      to: { path: '^src/', pathNot: ['^src/platform/(shared|database)/', nouns, '[.]sql[.]ts$'] },
    },
    {
      name: 'routes-are-registered-by-name',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/app[.]ts$' },
      to: { path: '[.]routes[.]ts$' },
    },
    {
      name: 'the-test-gateway-stands-alone',
      comment: 'It stands for another company, so it shares no code with us.',
      severity: 'error',
      from: { path: '^test-gateway/' },
      to: { path: '^(src|test|web)/' },
    },
    {
      name: 'the-sdk-stands-alone',
      comment: 'Merchants install it alone, and it runs where there is no Node.',
      severity: 'error',
      from: { path: '^sdk/src/' },
      to: { pathNot: '^sdk/src/' },
    },
    {
      name: 'the-shop-knows-nothing-but-the-sdk',
      comment: 'A merchant has only the SDK.',
      severity: 'error',
      from: { path: '^examples/' },
      to: { path: '^(src|test|test-gateway|web|sdk/src)/' },
    },
    {
      name: 'the-product-does-not-need-its-tests',
      severity: 'error',
      from: { path: '^src/', pathNot: '[.]test[.]ts$' },
      to: { path: '^(test|bench|sdk|examples)/' },
    },
    {
      name: 'no-development-packages-in-the-product',
      comment: 'A release has only `dependencies`.',
      severity: 'error',
      from: { path: '^src/', pathNot: '[.]test[.]ts$' },
      to: { dependencyTypes: ['npm-dev', 'npm-peer'] },
    },
    { name: 'resolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^sdk/dist/' },
    // The compiler that we check with has no API yet; this parser needs none.
    parser: 'swc',
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
};
