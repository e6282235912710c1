import type { Generated, JSONColumnType } from 'kysely';
import type { GatewayName } from '#gateway/gateway-name.ts';
import type { Fixed, JsonValue } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Language } from '#platform/shared/language.ts';
import type { Rule } from './merchant.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    merchants: {
      id: Fixed<string>;
      name: string;
      territory: Fixed<string>;
      rules: JSONColumnType<Rule[]>;
      created_at: Fixed<Timestamp>;
      clock_ahead_ms: Generated<number>;
      preselected_term: number | null;
      short_name: string | null;
      no_fees: Generated<boolean>;
      language: Generated<Language>;
      contact: string | null;
      address: string | null;
      vat_number: string | null;
      logo: string | null;
      logo_png: Buffer | null;
      four_eyes_above: JsonValue<number | 'none' | null>;
      has_events: Generated<boolean>;
      gateway: GatewayName | null;
      second_gateway: GatewayName | null;
    };
  }
}
