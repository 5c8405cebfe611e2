import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClientAddress } from '../../src/edge/client-address.ts';

const clientOf = createClientAddress(['10.0.0.0/8', '192.0.2.7', 'fd00::/8']);

test('without a trusted peer, X-Forwarded-For is anybody’s claim', () => {
  assert.equal(clientOf('203.0.113.9', '198.51.100.1'), '203.0.113.9');
  assert.equal(createClientAddress([])('10.0.0.1', '198.51.100.1'), '10.0.0.1');
});

test('behind trusted proxies the nearest address that is none of theirs is the client', () => {
  assert.equal(clientOf('10.0.0.1', '198.51.100.1'), '198.51.100.1');
  assert.equal(clientOf('::ffff:10.0.0.1', '6.6.6.6, 198.51.100.1, 192.0.2.7'), '198.51.100.1');
  assert.equal(clientOf('fd00::1', '2001:db8::1'), '2001:db8::1');
});

test('what is no address ends the way back', () => {
  assert.equal(clientOf('10.0.0.1', '198.51.100.1, unknown'), '10.0.0.1');
  assert.equal(clientOf('10.0.0.1', '6.6.6.6, "x\n", 10.0.0.3'), '10.0.0.3');
  assert.equal(clientOf('10.0.0.1', ''), '10.0.0.1');
});

test('an IPv4 address over an IPv6 socket is told as IPv4; a connection that is gone has none', () => {
  assert.equal(clientOf('::ffff:203.0.113.9', undefined), '203.0.113.9');
  assert.equal(clientOf(undefined, undefined), undefined);
});
