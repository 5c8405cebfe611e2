/** A key and a certificate that nobody signed, made on the spot: none is kept in the repository. */
import { createSign, generateKeyPairSync } from 'node:crypto';

/** DER: tag, length, content. */
function der(tag: number, ...content: Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  const length =
    body.length < 0x80
      ? Buffer.of(body.length)
      : body.length < 0x100
        ? Buffer.of(0x81, body.length)
        : Buffer.of(0x82, body.length >> 8, body.length & 0xff);
  return Buffer.concat([Buffer.of(tag), length, body]);
}

const sequence = (...content: Uint8Array[]): Buffer => der(0x30, ...content);
const utcTime = (text: string): Buffer => der(0x17, Buffer.from(text));
const ECDSA_WITH_SHA256 = sequence(der(0x06, Buffer.from('2a8648ce3d040302', 'hex')));

/** For `localhost`, valid for the time tests are likely to run. */
export function selfSigned(): { readonly key: string; readonly cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const name = sequence(
    der(0x31, sequence(der(0x06, Buffer.from('550403', 'hex')), der(0x0c, Buffer.from('localhost')))),
  );
  const alternative = sequence(der(0x82, Buffer.from('localhost')));
  const extensions = der(
    0xa3,
    sequence(sequence(der(0x06, Buffer.from('551d11', 'hex')), der(0x04, alternative))),
  );
  const body = sequence(
    der(0xa0, der(0x02, Buffer.of(2))),
    der(0x02, Buffer.of(1)),
    ECDSA_WITH_SHA256,
    name,
    sequence(utcTime('250101000000Z'), utcTime('491231235959Z')),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    extensions,
  );
  const signature = createSign('sha256').update(body).sign(privateKey);
  const cert = sequence(body, ECDSA_WITH_SHA256, der(0x03, Buffer.of(0), signature));
  const lines = cert.toString('base64').match(/.{1,64}/g) ?? [];
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`,
  };
}
