import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  decode,
  ENVELOPE_MAX_BYTES,
  encode,
  FIELD_MAX_BYTES,
  type Sealed,
  URIS_MAX_BYTES,
} from '../../src/cache/redis/envelope.ts';
import { createSealer } from '../../src/cache/redis/seal.ts';
import { Secret } from '../../src/config/secret.ts';

const OLD = new Secret('an old secret that is long enough.');
const NEW = new Secret('a new secret, which is long enough');
const sealer = createSealer([OLD], randomBytes);
const KEY = 'headgate:1:{0123456789abcdef}:e:key';

const entries: fc.Arbitrary<Sealed> = fc.record({
  token: fc.nat(Number.MAX_SAFE_INTEGER),
  receivedAtUs: fc.nat(Number.MAX_SAFE_INTEGER),
  uris: fc.array(fc.string({ maxLength: 60, unit: 'grapheme' }), { maxLength: 8 }),
  scope: fc.constantFrom('public', 'private'),
  ttlMs: fc.option(fc.nat(), { nil: undefined }),
  tail: fc.uint8Array({ maxLength: 300 }),
});

const sample = (rest: Partial<Sealed> = {}): Sealed => ({
  token: 1_764_491_234_567_890,
  receivedAtUs: 1_764_491_234_000_000,
  uris: ['u:abc', 'u:def'],
  scope: 'private',
  ttlMs: 60_000,
  tail: Buffer.from('"contents":[]}'),
  ...rest,
});

function written(entry: Sealed, by = sealer): Buffer {
  return encode(entry, KEY, by) ?? assert.fail('not written');
}

describe('the envelope of an entry in Redis', () => {
  test('gives back what was put in', () => {
    fc.assert(
      fc.property(entries, (entry) => {
        const found = decode(written(entry), KEY, sealer);
        assert.deepEqual(found && { ...found, tail: [...found.tail] }, { ...entry, tail: [...entry.tail] });
      }),
    );
  });

  test('that was changed in any byte, cut or lengthened is none, if it was sealed', () => {
    const bytes = written(sample());
    for (let at = 0; at < bytes.byteLength; at++) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] as number) ^ 1;
      assert.equal(decode(changed, KEY, sealer), undefined, `byte ${at}`);
      assert.equal(decode(bytes.subarray(0, at), KEY, sealer), undefined, `cut at ${at}`);
    }
    assert.equal(decode(Buffer.concat([bytes, Buffer.of(0)]), KEY, sealer), undefined);
  });

  test('is read under its own key only, if it was sealed', () => {
    assert.equal(decode(written(sample()), `${KEY}x`, sealer), undefined);
  });

  test('made of any bytes never throws', () => {
    const bytes = written(sample());
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 300 }),
        fc.nat(bytes.byteLength),
        fc.constantFrom('', bytes.toString('latin1')),
        (noise, at, front) => {
          decode(Buffer.concat([Buffer.from(front.slice(0, at), 'latin1'), noise]), KEY, sealer);
        },
      ),
    );
  });

  test('in the clear is for everybody: a plain one that says private is none', () => {
    const forged = Buffer.from(
      written(sample({ scope: 'public' }))
        .toString('latin1')
        .replace('000029', '000030')
        .replace('public', 'private'),
      'latin1',
    );
    assert.match(forged.toString('latin1'), /"private"/);
    assert.equal(decode(forged, KEY, sealer), undefined);
  });

  test('holds nothing of a private answer in the clear, and never the same bytes twice', () => {
    const entry = sample({ tail: Buffer.from('a very private text') });
    const [one, two] = [written(entry), written(entry)];
    assert.ok(!one.includes('very private'));
    assert.ok(!one.includes('ttlMs'));
    assert.notDeepEqual(one, two);
  });

  test('is opened by every secret and sealed by the first, so that secrets rotate without a flush', () => {
    const rotated = createSealer([NEW, OLD], randomBytes);
    const oldEnvelope = written(sample());
    const newEnvelope = written(sample(), rotated);
    assert.notEqual(decode(oldEnvelope, KEY, rotated), undefined);
    assert.notEqual(decode(newEnvelope, KEY, rotated), undefined);
    assert.equal(decode(newEnvelope, KEY, sealer), undefined);
    assert.notEqual(decode(newEnvelope, KEY, createSealer([OLD, NEW], randomBytes)), undefined);
  });

  test('is not made for a private answer without a secret, nor read', () => {
    assert.equal(createSealer([], randomBytes), undefined);
    assert.equal(encode(sample(), KEY, undefined), undefined);
    assert.equal(decode(written(sample()), KEY, undefined), undefined);
    assert.notEqual(encode(sample({ scope: 'public' }), KEY, undefined), undefined);
  });

  test('is bounded around the tail', () => {
    const fields = (count: number) => Array.from({ length: count }, () => 'x'.repeat(61));
    const most = URIS_MAX_BYTES / 64;
    const full = written(sample({ uris: fields(most) }));
    assert.ok(full.byteLength - sample().tail.byteLength <= ENVELOPE_MAX_BYTES);
    assert.notEqual(decode(full, KEY, sealer), undefined);
    assert.equal(encode(sample({ uris: fields(most + 1) }), KEY, sealer), undefined);
    assert.notEqual(encode(sample({ uris: ['x'.repeat(FIELD_MAX_BYTES)] }), KEY, sealer), undefined);
    assert.equal(encode(sample({ uris: ['x'.repeat(FIELD_MAX_BYTES + 1)] }), KEY, sealer), undefined);
  });
});
