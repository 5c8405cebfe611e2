import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeHeaderValue, encodeHeaderValue, mediaType, readHead } from '../../src/protocol/headers.ts';

const wellFormed = fc.string({ unit: 'binary' });

test('R1: decode(encode(s)) = s for every string, the empty one included', () => {
  fc.assert(
    fc.property(wellFormed, (text) => decodeHeaderValue(encodeHeaderValue(text)) === text),
    { examples: [[''], [' x'], ['=?base64?eA==?='], ['日本語'], ['a b']] },
  );
});

test('R1: an encoded value is visible ASCII without white space at its ends', () => {
  fc.assert(
    fc.property(wellFormed, (text) =>
      /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(encodeHeaderValue(text)),
    ),
  );
});

test('R1: the wrapped and the plain spelling of a name are the same name', () => {
  fc.assert(
    fc.property(wellFormed, (text) => {
      const wrapped = `=?base64?${Buffer.from(text, 'utf8').toString('base64')}?=`;
      return decodeHeaderValue(wrapped) === text;
    }),
  );
});

test('R1: upper-case markers are not markers', () => {
  assert.equal(decodeHeaderValue('=?BASE64?eA==?='), '=?BASE64?eA==?=');
});

test('R1: a value with only one of the markers is plain', () => {
  assert.equal(decodeHeaderValue('=?base64?SGVsbG8='), '=?base64?SGVsbG8=');
  assert.equal(decodeHeaderValue('SGVsbG8=?='), 'SGVsbG8=?=');
});

for (const [what, value] of [
  ['raw non-ASCII bytes', 'r\u00e9s'],
  ['control characters', 'a\tb'],
  ['an empty plain value', ''],
  ['characters outside the base64 alphabet', '=?base64?SGVs!!!bG8=?='],
  ['base64 without its padding', '=?base64?SGVsbG8?='],
  ['base64 with stray bits', '=?base64?eB==?='],
  ['base64url', '=?base64?_-8=?='],
  ['white space inside base64', '=?base64?SGVs bG8=?='],
  ['base64 of invalid UTF-8', `=?base64?${Buffer.from([0xc3, 0x28]).toString('base64')}?=`],
  ['base64 of an encoded surrogate', `=?base64?${Buffer.from([0xed, 0xa0, 0x80]).toString('base64')}?=`],
] as const) {
  test(`R2: ${what} is malformed`, () => {
    assert.equal(decodeHeaderValue(value), undefined);
  });
}

test('R2: a wrapped empty string is the empty name', () => {
  assert.equal(decodeHeaderValue('=?base64??='), '');
});

test('R2: a BOM inside a wrapped name is part of the name', () => {
  assert.equal(decodeHeaderValue(encodeHeaderValue('\ufeffx')), '\ufeffx');
});

for (const name of [
  'MCP-Protocol-Version',
  'Mcp-Method',
  'Mcp-Name',
  'Host',
  'Origin',
  'Authorization',
  'Content-Type',
  'Content-Length',
  'Mcp-Param-Region',
]) {
  test(`R4: ${name} sent twice is noticed, also in another case`, () => {
    assert.equal(readHead([name, 'a', name.toUpperCase(), 'a']).duplicated, name.toLowerCase());
  });
}

test('R4: a header that may repeat is joined', () => {
  const head = readHead(['Accept', 'a', 'accept', 'b']);
  assert.equal(head.duplicated, undefined);
  assert.equal(head.headers.get('accept'), 'a, b');
});

test('R10: header values keep their case; white space around them goes', () => {
  assert.equal(readHead(['Mcp-Name', '  Res://A \t']).headers.get('mcp-name'), 'Res://A');
});

test('R7: a media type is read in any case, with parameters', () => {
  assert.deepEqual(mediaType('Application/JSON; Charset="UTF-8"'), {
    type: 'application/json',
    charset: 'utf-8',
  });
  assert.deepEqual(mediaType('application/json'), { type: 'application/json', charset: undefined });
});
