import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

// Makes certificates for receivers when a test needs them, so that none in the repository expires
// and no other program is needed.

/** One DER value: tag, length, content. */
function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size =
    length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

const sequence = (...parts: Buffer[]) => der(0x30, ...parts);
const objectId = (hex: string) => der(0x06, Buffer.from(hex, 'hex'));
const text = (value: string) => der(0x0c, Buffer.from(value));
const bits = (value: Buffer) => der(0x03, Buffer.from([0]), value);
const time = (instant: Temporal.Instant) =>
  der(0x18, Buffer.from(`${instant.toString({ smallestUnit: 'second' }).replace(/\D/g, '')}Z`));

const ecdsaWithSha256 = sequence(objectId('2a8648ce3d040302'));
const commonName = (name: string) => sequence(der(0x31, sequence(objectId('550403'), text(name))));
const isAuthority = sequence(
  objectId('551d13'),
  der(0x01, Buffer.from([0xff])),
  der(0x04, sequence(der(0x01, Buffer.from([0xff])))),
);
const alternativeNames = (names: Buffer[]) =>
  sequence(objectId('551d11'), der(0x04, sequence(...names)));

export type Certificate = { cert: string; key: string };
type Issuer = { name: string; key: KeyObject };

function issue(
  subject: { name: string; publicKey: KeyObject },
  issuer: Issuer,
  extension: Buffer,
  valid: { from: Temporal.Instant; until: Temporal.Instant },
): string {
  const content = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ecdsaWithSha256,
    commonName(issuer.name),
    sequence(time(valid.from), time(valid.until)),
    commonName(subject.name),
    subject.publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(extension)),
  );
  const signature = sign('sha256', content, issuer.key);
  const whole = sequence(content, ecdsaWithSha256, bits(signature)).toString('base64');
  return `-----BEGIN CERTIFICATE-----\n${(whole.match(/.{1,64}/g) ?? []).join('\n')}\n-----END CERTIFICATE-----\n`;
}

const newKeys = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });
const pem = (key: KeyObject) => key.export({ type: 'pkcs8', format: 'pem' }).toString();
const hours = (count: number) => Temporal.Now.instant().add({ hours: count });

export function createAuthority(name = 'Authority of a test') {
  const { publicKey, privateKey } = newKeys();
  const issuer = { name, key: privateKey };
  const always = { from: hours(-1), until: hours(24) };
  return {
    cert: issue({ name, publicKey }, issuer, isAuthority, always),
    /** A certificate for these host names and IPv4 addresses. */
    certify(hosts: string[], valid = always): Certificate {
      const keys = newKeys();
      const names = hosts.map((host) =>
        /^[\d.]+$/.test(host)
          ? der(0x87, Buffer.from(host.split('.').map(Number)))
          : der(0x82, Buffer.from(host)),
      );
      const subject = { name: hosts[0] ?? '', publicKey: keys.publicKey };
      return {
        cert: issue(subject, issuer, alternativeNames(names), valid),
        key: pem(keys.privateKey),
      };
    },
  };
}

export const expired = () => ({ from: hours(-48), until: hours(-24) });
export const notYetValid = () => ({ from: hours(24), until: hours(48) });

/** A self-signed certificate. */
export function selfSigned(host: string): Certificate {
  const { publicKey, privateKey } = newKeys();
  const valid = { from: hours(-1), until: hours(24) };
  const names = alternativeNames([der(0x82, Buffer.from(host))]);
  const cert = issue({ name: host, publicKey }, { name: host, key: privateKey }, names, valid);
  return { cert, key: pem(privateKey) };
}
