import assert from 'node:assert/strict';
import {
  closedSetting,
  gatewayProblems,
  givenProtocols,
  prefixOf,
  readGatewaySettings,
} from '#gateway/adapters/read-settings.ts';
import { type GatewayName, gatewayName, mainGateway } from '#gateway/gateway-name.ts';
import { type NamedSettings, type Protocol, protocols } from '#gateway/settings.ts';
import type { Reader } from './reader.ts';

/**
 * The gateways for which the operator has given keys: those that GATEWAYS names, each with its own
 * settings, or a single one, `main`, whose settings need no prefix. A test gateway that the
 * operator started also needs its URL. Null in a sandbox without any gateway, where the supervisor
 * starts one.
 */
export function readGateways(
  reader: Reader,
  purpose: 'service' | 'command',
): NamedSettings[] | null {
  const { environment, text, problem } = reader;
  const given = text('GATEWAYS');
  const isAlone = given === undefined;
  if (isAlone && givenProtocols(readerOf(text, mainGateway)).length === 0) {
    if (environment === 'sandbox') return null;
  }
  const names = isAlone ? [mainGateway] : readNames(given, problem);
  if (!names.includes(mainGateway) && givenProtocols(text).length > 0) {
    problem('The keys of a gateway are set without a prefix, but GATEWAYS does not name main.');
  }
  const gateways = names.map((name) => {
    const read = readerOf(text, name);
    const [protocol, ...others] = givenProtocols(read);
    const where = isAlone ? '' : ` for ${name}`;
    if (others.length > 0) problem(`The keys of two gateways are set${where}. Set those of one.`);
    if (protocol === undefined && !isAlone) {
      problem(`GATEWAYS names ${name}, but none of its keys is set (${prefixOf(name)}…).`);
    }
    checkClosed(reader, name);
    const settings = readGatewaySettings(name, protocol ?? protocols[0], environment, read);
    // A command that only works on the database needs no gateway.
    const problems = purpose === 'service' ? gatewayProblems(settings) : [];
    for (const one of problems) problem(isAlone ? one : `${name}: ${one}`);
    return settings;
  });
  for (const [index, one] of gateways.entries()) {
    const same = gateways.slice(0, index).find((other) => isSameAccount(one, other));
    if (same)
      problem(`${same.name} and ${one.name} have the same key. A name stands for one account.`);
  }
  refuseAllClosed(reader, gateways);
  return gateways;
}

/** A test gateway that the supervisor of a sandbox starts. It is named after its protocol. */
export type SandboxGateway = { name: GatewayName; protocol: Protocol; isClosed: boolean };

export function readSandboxGateways(reader: Reader): SandboxGateway[] {
  const chosen = reader.choice('SANDBOX_GATEWAY', [...protocols, 'both'], protocols[0]);
  const gateways = (chosen === 'both' ? protocols : [chosen]).map((protocol) => {
    const name = gatewayName(protocol);
    assert(name);
    return { name, protocol, isClosed: checkClosed(reader, name) };
  });
  refuseAllClosed(reader, gateways);
  return gateways;
}

function checkClosed({ text, problem }: Reader, name: GatewayName): boolean {
  const setting = prefixOf(name) + closedSetting;
  const closed = text(setting) ?? 'false';
  if (closed !== 'true' && closed !== 'false') {
    problem(`${setting} is "${closed}" and must be true or false.`);
  }
  return closed === 'true';
}

function refuseAllClosed({ problem }: Reader, gateways: readonly { isClosed?: boolean }[]): void {
  if (gateways.every(({ isClosed }) => isClosed)) {
    problem('Every gateway is closed for new checkouts. Leave one open.');
  }
}

const isSameAccount = (one: NamedSettings, other: NamedSettings) =>
  one.secretKey !== '' && one.secretKey === other.secretKey && one.apiUrl === other.apiUrl;

/**
 * `main` may use the settings of a single gateway, so that a second one can be added without
 * renaming them.
 */
const readerOf =
  (text: Reader['text'], name: GatewayName): Reader['text'] =>
  (setting) => {
    const mayBeBare = name === mainGateway && setting !== closedSetting;
    return text(prefixOf(name) + setting) ?? (mayBeBare ? text(setting) : undefined);
  };

function readNames(given: string, problem: Reader['problem']): GatewayName[] {
  const texts = given.split(',').map((part) => part.trim());
  const names = texts.flatMap((text) => gatewayName(text) ?? []);
  if (names.length < texts.length || new Set(names).size < names.length) {
    problem(
      `GATEWAYS is "${given}" and must be different names, with commas between them, each of up to 20 lower-case letters and digits.`,
    );
  }
  return names;
}
