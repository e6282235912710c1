import { type CardEntry, type Gateway, OutcomeUnknown } from './gateway.ts';
import type { ChosenGateways, GatewayName } from './gateway-name.ts';

/**
 * The settings have no gateway with this name. Nothing was sent, and the row stays due until an
 * operator restores the settings.
 */
export class GatewayMissing extends OutcomeUnknown {
  constructor(name: string) {
    super(
      `this payment was made at gateway ${name}, which is no longer in the settings`,
      'no_answer',
    );
  }
}

/** All gateways of the service, by name. The first one is the default for all merchants. */
export type Gateways = {
  readonly names: readonly GatewayName[];
  /** The gateway that holds a row's payment. Throws `GatewayMissing`. */
  of(name: GatewayName): Gateway;
  isClosed(name: GatewayName): boolean;
  /**
   * The gateway for a new checkout: the first of the merchant's two choices that takes new
   * checkouts, or else the service's first gateway that does.
   */
  choose(merchant: ChosenGateways): GatewayName;
  /**
   * The merchant's other gateway, which takes new shoppers while gateway `name` does not answer.
   * Null while `name` answers, or if the other one cannot stand in.
   */
  findStandIn(name: GatewayName, merchant: ChosenGateways): GatewayName | null;
};

/** The card form of a gateway; null if the settings do not have this gateway. */
export const findCardEntry = (gateways: Gateways, name: GatewayName): CardEntry | null =>
  gateways.names.includes(name) ? gateways.of(name).cardEntry : null;

export type NamedGateway = { name: GatewayName; isClosed: boolean; gateway: Gateway };

export function createGateways(named: readonly NamedGateway[]): Gateways {
  const byName = new Map(named.map((one) => [one.name, one]));
  return {
    names: named.map(({ name }) => name),
    of(name) {
      const found = byName.get(name);
      if (!found) throw new GatewayMissing(name);
      return found.gateway;
    },
    isClosed: (name) => byName.get(name)?.isClosed ?? true,
    choose: (merchant) => chooseGateway(named, merchant),
    findStandIn(name, { gateway, second_gateway }) {
      const isAnswering = (one: NamedGateway) => one.gateway.isAnswering?.() ?? true;
      const current = byName.get(name);
      if (current && isAnswering(current)) return null;
      const found = named.find(
        (one) =>
          one.name !== name &&
          (one.name === gateway || one.name === second_gateway) &&
          !one.isClosed &&
          isAnswering(one),
      );
      return found?.name ?? null;
    },
  };
}

/**
 * Leaves out a gateway that is closed or missing from the settings. If all are closed, the default
 * is chosen all the same.
 */
export function chooseGateway(
  named: readonly { name: GatewayName; isClosed?: boolean }[],
  { gateway, second_gateway }: ChosenGateways,
): GatewayName {
  const open = named.filter(({ isClosed }) => !isClosed).map(({ name }) => name);
  const chosen =
    open.find((name) => name === gateway) ?? open.find((name) => name === second_gateway);
  const name = chosen ?? open[0] ?? named[0]?.name;
  if (name === undefined) throw new Error('the settings name no gateway');
  return name;
}

export const eachGateway = (
  gateways: Gateways,
  wrap: (gateway: Gateway, name: GatewayName) => Gateway,
): Gateways =>
  createGateways(
    gateways.names.map((name) => ({
      name,
      isClosed: gateways.isClosed(name),
      gateway: wrap(gateways.of(name), name),
    })),
  );
