import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { catalogue, type Fleet, fleet, type Script } from '../support/scripted.ts';

/** Answers reads with how often it was asked, and hints that depend on the URI. */
function script(): Script {
  let count = 0;
  return (method, params, request) => {
    if (method !== 'resources/read') return catalogue({ ttlMs: 0 })(method, params, request);
    const uri = String(params.uri);
    if (uri.endsWith('gone')) return { error: { code: -32602, message: `gone ${++count}` } };
    return {
      result: {
        contents: [{ uri, text: `${request.headers.authorization ?? 'nobody'} ${++count}` }],
        ttlMs: uri.endsWith('short') ? 500 : 60_000,
        cacheScope: uri.includes('public') ? 'public' : 'private',
      },
    };
  };
}

const step = fc.oneof(
  fc.record({
    kind: fc.constant('read' as const),
    uri: fc.constantFrom(
      'x://public/a',
      'x://public/short',
      'x://own/a',
      'x://own/short',
      'x://gone',
      'y://b',
    ),
    token: fc.constantFrom(undefined, 'Bearer a', 'Bearer b'),
    params: fc.constantFrom({}, { extra: 1 }, { requestState: 's' }, { cursor: 5 }),
    headers: fc.constantFrom({}, { 'x-tenant': 't' }, { 'mcp-name': 'x://other' }),
  }),
  fc.record({ kind: fc.constant('tick' as const), ms: fc.constantFrom(1, 400, 70_000) }),
  fc.record({ kind: fc.constant('invalidate' as const), upstream: fc.constantFrom('a', 'b') }),
);

const routes = fc.record({
  cache: fc.boolean(),
  auth: fc.constantFrom({ type: 'none' as const }, { type: 'forward' as const, shared: false }),
  forwardHeaders: fc.constantFrom([], ['x-tenant']),
  claims: fc.boolean(),
});

test('R3 R22 R27: the fast lane answers exactly as the plain lane, whatever is asked in whatever order', async () => {
  await fc.assert(
    fc.asyncProperty(routes, fc.array(step, { maxLength: 40 }), async (shape, steps) => {
      const make = (lane?: 'plain'): Fleet =>
        fleet({
          upstreams: ['a', 'b'].map((name) => ({
            name,
            script: script(),
            config: {
              auth: shape.auth,
              forwardHeaders: shape.forwardHeaders,
              ...(shape.claims && {
                claims: { resources: [name === 'a' ? 'x://**' : 'y://**'], tools: [], prompts: [] },
              }),
            },
          })),
          route: { cache: shape.cache },
          partitionHeaders: ['x-tenant'],
          ...(lane !== undefined && { lane }),
        });
      const lanes = [make(), make('plain')];
      for (const one of steps) {
        const seen = [];
        for (const f of lanes) {
          if (one.kind === 'tick') f.tick(one.ms);
          else if (one.kind === 'invalidate') f.cache.invalidateUpstream(one.upstream);
          else {
            const { status, headers, text } = await f.ask(
              'resources/read',
              { uri: one.uri, ...one.params },
              one.token,
              one.headers,
            );
            seen.push({ status, headers, text, asked: f.upstreams.map(({ asked }) => asked.length) });
          }
        }
        assert.deepEqual(seen[0], seen[1]);
      }
    }),
    { numRuns: 150 },
  );
});

test('and is taken: what comes again is fresh without being taken apart', async () => {
  const f = fleet({ upstreams: [{ name: 'a', script: script() }] });
  for (const expected of ['headgate; fwd=uri-miss; stored', 'headgate; hit; ttl=60; detail=memory']) {
    const { headers } = await f.ask('resources/read', { uri: 'x://public/a' });
    assert.equal(headers['cache-status'], expected);
  }
});
