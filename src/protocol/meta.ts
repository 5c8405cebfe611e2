/** The reserved keys of `_meta`. *Spec:* basic/index, "`_meta`"; basic/versioning. */

export const META_VERSION = 'io.modelcontextprotocol/protocolVersion';
export const META_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
export const META_CLIENT_INFO = 'io.modelcontextprotocol/clientInfo';
export const META_LOG_LEVEL = 'io.modelcontextprotocol/logLevel';
export const META_SERVER_INFO = 'io.modelcontextprotocol/serverInfo';
export const META_SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';
/** Names the upstreams that a list had to leave out. */
export const META_INCOMPLETE = 'dev.headgate/incomplete';
/** Within the gateway: the older revision that an upstream really speaks. */
export const META_TRANSLATED = 'dev.headgate/translated';

/** The revisions the gateway speaks, newest first. */
export const SUPPORTED_VERSIONS: readonly string[] = ['2026-07-28'];
export const CURRENT_VERSION = '2026-07-28';

/** `_meta` of what the gateway asks on its own, as JSON. */
export const GATEWAY_META = JSON.stringify({
  [META_VERSION]: CURRENT_VERSION,
  [META_CLIENT_INFO]: { name: 'headgate', version: '1' },
  [META_CAPABILITIES]: {},
});

/** What the requests of this revision say of themselves, each, and older ones do not. */
export const META_ENVELOPE: ReadonlySet<string> = new Set([
  META_VERSION,
  META_CAPABILITIES,
  META_CLIENT_INFO,
  META_LOG_LEVEL,
]);

/** Request `_meta` that cannot change an answer: not part of a cache key. */
export const META_WITHOUT_EFFECT: ReadonlySet<string> = new Set([
  META_VERSION, // stands in the key on its own
  META_CLIENT_INFO,
  META_LOG_LEVEL,
  'progressToken',
  'traceparent',
  'tracestate',
  'baggage',
]);

/** Result `_meta` that belongs to one request and is not replayed to another (R27). */
export const META_OF_ONE_REQUEST: ReadonlySet<string> = new Set([
  'traceparent',
  'tracestate',
  'baggage',
  'progressToken',
  META_SUBSCRIPTION_ID,
]);
