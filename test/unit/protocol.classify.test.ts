import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Body, bodyPlan, classify, type Message } from '../../src/protocol/classify.ts';
import { readHead } from '../../src/protocol/headers.ts';
import { meta, mirrored, rawHeaders, rpc, VERSION } from '../support/mcp.ts';

type Fields = Record<string, unknown>;

function whole(body: unknown): Body {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return { kind: 'whole', bytes: new TextEncoder().encode(text) };
}

function sort(headers: Record<string, string>, body: unknown): Message {
  return classify(readHead(rawHeaders(headers)), whole(body));
}

function refusedWith(message: Message, code: number, id: string | undefined, status = 400): void {
  assert.equal(message.kind, 'refused');
  assert.equal(message.refusal.code, code, message.refusal.message);
  assert.equal(message.refusal.status, status);
  assert.equal(message.id, id);
}

const READ = mirrored('resources/read', 'res://a/1');
const read = (params: Fields = {}, id: string | number = 7): Fields =>
  rpc('resources/read', { uri: 'res://a/1', ...params }, id);

test('a read in order is a request with its name, id and params', () => {
  const message = sort(READ, read());
  assert.equal(message.kind, 'request');
  assert.equal(message.request.name, 'res://a/1');
  assert.equal(message.request.id, '7');
  assert.equal(message.request.row.cacheable, true);
});

test('R1: the wrapped spelling of Mcp-Name is the same request', () => {
  const wrapped = `=?base64?${Buffer.from('res://a/1').toString('base64')}?=`;
  const message = sort({ ...READ, 'mcp-name': wrapped }, read());
  assert.equal(message.kind === 'request' && message.request.name, 'res://a/1');
});

for (const [what, value] of [
  ['broken base64', '=?base64?@@@?='],
  ['raw bytes', 'res://\u00e9'],
] as const) {
  test(`R2: Mcp-Name with ${what} is -32020 with the id`, () => {
    refusedWith(sort({ ...READ, 'mcp-name': value }, read()), -32020, '7');
  });
}

test('R2: Mcp-Name missing where it is required is -32020', () => {
  refusedWith(sort(mirrored('resources/read'), read()), -32020, '7');
});

test('R2: Mcp-Name is ignored on a method that has none, even malformed', () => {
  const message = sort({ ...mirrored('tools/list'), 'mcp-name': '=?base64?@@@?=' }, rpc('tools/list'));
  assert.equal(message.kind === 'request' && message.request.name, undefined);
});

test('R3: a name, method or version that differs from the body is -32020, case counts', () => {
  refusedWith(sort({ ...READ, 'mcp-name': 'RES://a/1' }, read()), -32020, '7');
  refusedWith(sort({ ...READ, 'mcp-method': 'Resources/Read' }, read()), -32020, '7');
  refusedWith(sort({ ...READ, 'mcp-protocol-version': '2025-11-25' }, read()), -32020, '7');
});

test('R3: a read without its uri differs from its header', () => {
  refusedWith(sort(READ, rpc('resources/read')), -32020, '7');
});

test('R4: a mirrored header sent twice is -32020, also with equal values', () => {
  const head = readHead([...rawHeaders(READ), 'Mcp-Name', 'res://a/1']);
  refusedWith(classify(head, whole(read())), -32020, '7');
});

test('R5: the order of errors: JSON, single request, headers, _meta, equality, version, method, params', () => {
  const wrong = { ...mirrored('tools/list'), 'mcp-protocol-version': '2099-01-01' };
  refusedWith(sort({}, '{"jsonrpc"'), -32700, undefined);
  refusedWith(sort({}, [rpc('tools/list')]), -32600, undefined);
  refusedWith(sort({}, rpc('tools/list')), -32020, '7');
  refusedWith(sort(wrong, { jsonrpc: '2.0', id: 7, method: 'nope', params: {} }), -32602, '7');
  refusedWith(sort(wrong, rpc('nope')), -32020, '7');
  const future = rpc('nope', { _meta: meta({ 'io.modelcontextprotocol/protocolVersion': '2099-01-01' }) });
  refusedWith(sort({ ...wrong, 'mcp-method': 'nope' }, future), -32022, '7');
  refusedWith(sort(mirrored('ping'), rpc('ping')), -32601, '7', 404);
  refusedWith(sort(mirrored('tools/list'), rpc('tools/list', { cursor: 5 })), -32602, '7', 200);
});

for (const field of ['protocolVersion', 'clientCapabilities']) {
  test(`R5: _meta without ${field} is -32602 with 400, not -32020`, () => {
    const incomplete = meta();
    delete incomplete[`io.modelcontextprotocol/${field}`];
    refusedWith(sort(READ, read({ _meta: incomplete })), -32602, '7');
  });
}

test('R5: without Mcp-Method a notification is accepted', () => {
  const body = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'listen:0' } };
  assert.equal(sort({ 'mcp-protocol-version': VERSION }, body).kind, 'notification');
});

test('R5: initialize without a modern _meta is -32022 with what is supported and what was requested', () => {
  const body = {
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {} },
  };
  const message = sort({}, body);
  refusedWith(message, -32022, '1');
  assert.deepEqual(message.kind === 'refused' && message.refusal.data, {
    supported: [VERSION],
    requested: '2025-11-25',
  });
});

test('R5: initialize inside a modern envelope is an unknown method', () => {
  refusedWith(sort(mirrored('initialize'), rpc('initialize')), -32601, '7', 404);
});

for (const method of ['ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe']) {
  test(`${method} was removed from the protocol: 404 -32601`, () => {
    refusedWith(sort(mirrored(method), rpc(method)), -32601, '7', 404);
  });
}

for (const [what, text] of [
  [
    'a key that comes twice',
    '{"jsonrpc":"2.0","id":7,"method":"tools/list","method":"resources/list","params":{}}',
  ],
  [
    'a key in another case',
    '{"jsonrpc":"2.0","id":7,"method":"tools/list","Method":"resources/list","params":{}}',
  ],
  [
    'a key with a letter that folds to another',
    '{"jsonrpc":"2.0","id":7,"method":"tools/list","param\u017f":{},"params":{}}',
  ],
  [
    'a key with a capital I that keeps its dot when folded',
    '{"jsonrpc":"2.0","\u0130d":1,"id":7,"method":"tools/list","params":{}}',
  ],
  [
    'an escaped second spelling of a key',
    '{"jsonrpc":"2.0","id":7,"method":"tools/list","m\\u0065thod":"x","params":{}}',
  ],
] as const) {
  test(`R6: ${what} is refused: another parser could read another value`, () => {
    refusedWith(sort(mirrored('tools/list'), text), -32600, '7');
  });
}

test('R6: a doubled name or a case variant in params is refused', () => {
  const body = JSON.stringify(rpc('tools/call', { name: 'a' }));
  const headers = mirrored('tools/call', 'a');
  assert.equal(sort(headers, body).kind, 'request');
  refusedWith(sort(headers, body.replace('"name":"a"', '"name":"b","name":"a"')), -32602, '7');
  refusedWith(sort(headers, body.replace('"name":"a"', '"name":"a","NAME":"b"')), -32602, '7');
});

test('R6: a BOM, invalid UTF-8 and extreme nesting are no JSON', () => {
  refusedWith(sort({}, `\ufeff${JSON.stringify(rpc('tools/list'))}`), -32700, undefined);
  refusedWith(
    classify(readHead([]), { kind: 'whole', bytes: Buffer.from('7b22ff223a317d', 'hex') }),
    -32700,
    undefined,
  );
  refusedWith(sort({}, '['.repeat(100_000)), -32700, undefined);
  refusedWith(sort({}, `${'['.repeat(100_000)}${']'.repeat(100_000)}`), -32700, undefined);
});

test('R6: __proto__ is a key like any other', () => {
  const text = JSON.stringify(read()).replace('"params":{', '"params":{"__proto__":{"uri":"res://b"},');
  const message = sort(READ, text);
  assert.equal(message.kind === 'request' && message.request.name, 'res://a/1');
  assert.equal(({} as Fields).uri, undefined);
});

for (const id of ['9007199254740993', '-1', '"a\\u0062"', '"ünï-1"', '123456789012345678901234567890']) {
  test(`R8: the id ${id} keeps its spelling`, () => {
    const text = JSON.stringify(rpc('tools/list')).replace('"id":7', `"id":${id}`);
    const message = sort(mirrored('tools/list'), text);
    assert.equal(message.kind === 'request' && message.request.id, id);
  });
}

for (const id of ['null', '1.5', '1e3', 'true', '{}', '[]', `"${'x'.repeat(2000)}"`]) {
  test(`R8: the id ${id.slice(0, 20)} is refused, and not echoed`, () => {
    const text = JSON.stringify(rpc('tools/list')).replace('"id":7', `"id":${id}`);
    refusedWith(sort(mirrored('tools/list'), text), -32600, undefined);
  });
}

for (const uri of ['no-scheme', '/path', 'res://a/\u0000', 'res://a/\n', '://x', '1a:b']) {
  test(`R10: ${JSON.stringify(uri)} is no URI: -32602 with data.uri`, () => {
    const message = sort(mirrored('resources/read', uri), rpc('resources/read', { uri }));
    refusedWith(message, -32602, '7', 200);
    assert.deepEqual(message.kind === 'refused' && message.refusal.data, { uri });
  });
}

for (const uri of ['res://a/%2F', 'res://a/é', 'res://a/e\u0301', 'RES://A/x y', 'urn:isbn:1']) {
  test(`R10: ${uri} is taken as given`, () => {
    const message = sort(mirrored('resources/read', uri), rpc('resources/read', { uri }));
    assert.equal(message.kind === 'request' && message.request.name, uri);
  });
}

for (const [what, body] of [
  ['a response', { jsonrpc: '2.0', id: 7, result: {} }],
  ['an error response', { jsonrpc: '2.0', id: 7, error: { code: 1, message: '' } }],
  ['jsonrpc 1.0', { ...rpc('tools/list'), jsonrpc: '1.0' }],
  ['no jsonrpc', { id: 7, method: 'tools/list' }],
  ['a method that is no string', { ...rpc('tools/list'), method: 5 }],
] as const) {
  test(`R11: ${what} is 400 -32600`, () => {
    refusedWith(sort(mirrored('tools/list'), body), -32600, '7');
  });
}

test('R11: a request method without an id is no notification', () => {
  refusedWith(
    sort(mirrored('tools/call', 'x'), { jsonrpc: '2.0', method: 'tools/call', params: {} }),
    -32600,
    undefined,
  );
});

test('a body that flows is classified by its headers alone', () => {
  async function* rest(): AsyncGenerator<Uint8Array> {}
  const body: Body = { kind: 'begun', bytes: new Uint8Array(10), rest: rest() };
  const message = classify(readHead(rawHeaders(mirrored('tools/call', 'big'))), body);
  assert.equal(message.kind === 'request' && message.request.name, 'big');
  const old = classify(
    readHead(rawHeaders({ ...mirrored('tools/call', 'big'), 'mcp-protocol-version': '2025-11-25' })),
    body,
  );
  refusedWith(old, -32022, undefined);
});

test('bodies of calls flow; bodies of cacheable and removed methods are read', () => {
  const plan = (method: string) => bodyPlan(readHead(rawHeaders(mirrored(method))));
  assert.equal(plan('tools/call'), 'streamed');
  assert.equal(plan('acme/unknown'), 'streamed');
  assert.equal(plan('resources/read'), 'read');
  assert.equal(plan('ping'), 'read');
  assert.equal(bodyPlan(readHead([])), 'read');
});

test('R11: a notification is read whatever its size: it is answered here, and goes to no upstream', () => {
  const head = mirrored('notifications/x');
  assert.equal(bodyPlan(readHead(rawHeaders(head))), 'read');
  const params = { pad: 'x'.repeat(70_000) };
  assert.equal(sort(head, { jsonrpc: '2.0', method: 'notifications/x', params }).kind, 'notification');
});

for (const [what, ref] of [
  ['a member that differs by case alone', '{"type":"ref/resource","uri":"a://1","URI":"b://2"}'],
  ['a member that comes twice', '{"type":"ref/prompt","name":"a","name":"b"}'],
  ['a second type', '{"type":"ref/prompt","name":"a","uri":"b://1","Type":"ref/resource"}'],
] as const) {
  test(`R6: a completion whose ref has ${what} is refused`, () => {
    const body = JSON.stringify(rpc('completion/complete', { argument: { name: 'x', value: '' } }));
    const text = body.replace('"argument"', `"ref":${ref},"argument"`);
    refusedWith(sort(mirrored('completion/complete'), text), -32602, '7', 200);
  });
}

test('R20: a ref may have members that the gateway does not know, and of other methods any', () => {
  const ref = { type: 'ref/prompt', name: 'p', title: 'P' };
  assert.equal(sort(mirrored('completion/complete'), rpc('completion/complete', { ref })).kind, 'request');
  const text = JSON.stringify(rpc('acme/x')).replace('"_meta"', '"ref":{"uri":1,"URI":2},"_meta"');
  assert.equal(sort(mirrored('acme/x'), text).kind, 'request');
});

test('R6: no bytes whatever make the classifier throw', () => {
  const seed = new TextEncoder().encode(JSON.stringify(read()));
  const mutated = fc.tuple(fc.nat(seed.length - 1), fc.uint8Array({ maxLength: 4 })).map(([at, bytes]) => {
    const copy = Uint8Array.from(seed);
    copy.set(bytes.subarray(0, copy.length - at), at);
    return copy;
  });
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array(), mutated), (bytes) => {
      const message = classify(readHead(rawHeaders(READ)), { kind: 'whole', bytes });
      return message.kind === 'refused' || message.kind === 'request' || message.kind === 'notification';
    }),
    { numRuns: 2_000 },
  );
});
