import type { Gateway } from '#gateway/gateway.ts';
import type { GatewayName } from '#gateway/gateway-name.ts';
import { createGateways, type Gateways } from '#gateway/gateways.ts';
import { createHyperswitchGateway } from '#gateway/hyperswitch/hyperswitch.ts';
import { limitGateway, type ObserveCall } from '#gateway/limit-gateway.ts';
import type { GatewaySettings, NamedSettings, Protocol } from '#gateway/settings.ts';
import { createStripeGateway } from '#gateway/stripe/stripe.ts';
import type { Clock } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import { gatewayLimits } from './read-settings.ts';

const create: Record<Protocol, (settings: GatewaySettings) => Gateway> = {
  stripe: createStripeGateway,
  hyperswitch: createHyperswitchGateway,
};

export const createGateway = (settings: GatewaySettings): Gateway =>
  create[settings.protocol](settings);

export const openGateways = (
  settings: readonly NamedSettings[],
  deps: { clock: Clock; log: Logger },
  observe: (name: GatewayName, ...call: Parameters<ObserveCall>) => void = () => {},
): Gateways =>
  createGateways(
    settings.map((one) => ({
      name: one.name,
      isClosed: one.isClosed ?? false,
      gateway: limitGateway(
        createGateway(one),
        {
          clock: deps.clock,
          log: deps.log.child({ gateway: one.name }),
          observe: (...call) => observe(one.name, ...call),
        },
        gatewayLimits(one),
      ),
    })),
  );
