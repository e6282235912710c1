import type { GatewayName } from '#gateway/gateway-name.ts';
import { hyperswitchSettings } from '#gateway/hyperswitch/settings.ts';
import type { GatewayLimits } from '#gateway/limit-gateway.ts';
import type {
  AdapterSettings,
  GatewaySettings,
  NamedSettings,
  Protocol,
} from '#gateway/settings.ts';
import { stripeSettings } from '#gateway/stripe/settings.ts';

// Chooses the adapter that knows a gateway's settings. `create-gateway.ts` makes the gateway
// itself.

const adapters: Record<Protocol, AdapterSettings> = {
  stripe: stripeSettings,
  hyperswitch: hyperswitchSettings,
};

export const gatewayProblems = (settings: GatewaySettings): string[] =>
  adapters[settings.protocol].problems(settings);

export const gatewayLimits = (settings: GatewaySettings): GatewayLimits =>
  adapters[settings.protocol].limits(settings);

export const capabilitiesOf = (settings: GatewaySettings) =>
  adapters[settings.protocol].capabilities(settings);

/** The names of all adapters' settings that are secrets. */
export const secretNames = Object.values(adapters).flatMap(({ names }) => [
  names.secretKey,
  names.webhookSecret,
]);

type Read = (name: string) => string | undefined;

/** The protocols whose keys an operator has given. */
export const givenProtocols = (read: Read): Protocol[] =>
  (Object.keys(adapters) as Protocol[]).filter(
    (protocol) => read(adapters[protocol].names.secretKey) !== undefined,
  );

const bareUrl = <Url extends string | undefined>(url: Url) => url?.replace(/\/+$/, '') as Url;

/** Reads a gateway's settings as the operator gave them. `gatewayProblems` checks them later. */
export function readGatewaySettings(
  name: GatewayName,
  protocol: Protocol,
  environment: GatewaySettings['environment'],
  read: Read,
): NamedSettings {
  const { names } = adapters[protocol];
  const given = {
    apiUrl: names.apiUrl && bareUrl(read(names.apiUrl)),
    scriptUrl: names.scriptUrl && read(names.scriptUrl),
    statementPrefix: read(names.statementPrefix),
    webhookSecret: read(names.webhookSecret),
  };
  const amount = names.verificationAmount && read(names.verificationAmount);
  const frames = names.frameOrigins && read(names.frameOrigins);
  const testUrl = bareUrl(read(testGatewaySetting));
  return {
    ...{ name, protocol, environment },
    ...(read(closedSetting) === 'true' && { isClosed: true }),
    ...(amount !== undefined && { verificationAmount: Number(amount) }),
    ...(frames !== undefined && {
      frameOrigins: frames.split(',').map((frame) => bareUrl(frame.trim())),
    }),
    secretKey: read(names.secretKey) ?? '',
    publicKey: read(names.publicKey) ?? '',
    ...(Object.fromEntries(
      Object.entries(given).filter(([, value]) => value !== undefined),
    ) as Partial<GatewaySettings>),
    ...(testUrl !== undefined && atTestGateway(protocol, testUrl)),
  };
}

const testGatewaySetting = 'TEST_GATEWAY_URL';
export const closedSetting = 'CLOSED';

/**
 * The prefix of the settings of one of several gateways. For the gateway `peach`, `GATEWAY_PEACH_`
 * stands before the names of a single gateway's settings.
 */
export const prefixOf = (name: GatewayName) => `GATEWAY_${name.toUpperCase()}_`;

/** The settings with which an adapter finds our test gateway. */
export const atTestGateway = (protocol: Protocol, url: string) => ({
  apiUrl: url,
  scriptUrl: `${url}${adapters[protocol].testScript}`,
  testGateway: true,
});

/** The settings as an operator would give them, for a process or a command of the same service. */
export function environmentOf(gateways: readonly NamedSettings[]): Record<string, string> {
  const blocks = gateways.flatMap((settings) => {
    const { names } = adapters[settings.protocol];
    const { name, secretKey, publicKey, webhookSecret, apiUrl, testGateway } = settings;
    const values = {
      [names.secretKey]: secretKey,
      [names.publicKey]: publicKey,
      ...(webhookSecret !== undefined && { [names.webhookSecret]: webhookSecret }),
      ...(settings.isClosed && { [closedSetting]: 'true' }),
      ...(testGateway && apiUrl !== undefined && { [testGatewaySetting]: apiUrl }),
    };
    return Object.entries(values).map(([setting, value]) => [prefixOf(name) + setting, value]);
  });
  return {
    GATEWAYS: gateways.map(({ name }) => name).join(),
    ...Object.fromEntries(blocks),
  };
}

/** The names of the settings with which a command finds the same test gateway. */
export const settingsToFind = (protocol: Protocol): string[] => {
  const { names } = adapters[protocol];
  return [testGatewaySetting, names.secretKey, names.publicKey];
};
