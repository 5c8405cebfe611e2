/**
 * Looks at one server as the gateway would: over the gateway's own upstream, one question after the other.
 * *Never* calls a tool, gets a prompt or changes anything there. *Bounded by* the upstream's timeouts for each
 * question, and by twice its `response` timeout for each list.
 */
import { ownCredential } from '../auth/forward.ts';
import { displayArgs, displayUrl, secretsOf } from '../config/display.ts';
import type { Secret } from '../config/secret.ts';
import type { UpstreamConfig } from '../config/types.ts';
import { Abort } from '../protocol/signal.ts';
import type { UpstreamObserver } from '../upstream/types.ts';
import { createUpstream } from '../upstream/upstream.ts';
import type { Asker } from './asker.ts';
import { checkRefusals } from './checks.ts';
import type { Facts } from './facts.ts';
import { meet } from './hello.ts';
import { tryListening } from './listening.ts';
import { walkLists } from './lists.ts';
import { readEach } from './reads.ts';
import { cleaned } from './words.ts';

/** Read of what is listed: enough to see how a server does it. */
const SAMPLE = 5;
/** A text so short says nothing that is secret, and stands everywhere. */
const MIN_SECRET_CHARS = 4;

export interface Inspection {
  readonly config: UpstreamConfig;
  /** What stands in for a caller's own token, or for the one that the configuration lacks. */
  readonly bearer: Secret | undefined;
  /** Read in place of a sample. */
  readonly uri: string | undefined;
  /** The largest answer that the cache takes. */
  readonly maxEntryBytes: number;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

/** Looks at everything. *Never* rejects for what a server does. */
export async function inspect(inspection: Inspection): Promise<Facts> {
  const { config, bearer, now } = inspection;
  const upstream = createUpstream(config, { now, observer: NOBODY });
  const headers = {
    ...(bearer !== undefined && { authorization: `Bearer ${bearer.reveal()}` }),
    ...ownCredential(config),
  };
  const asker: Asker = { upstream, config, headers, now, signal: new Abort() };
  try {
    const facts = await look(asker, inspection);
    return cleaned(facts, secretsIn(inspection));
  } finally {
    await upstream.close();
  }
}

async function look(asker: Asker, { uri, maxEntryBytes }: Inspection): Promise<Facts> {
  const { config } = asker;
  const target = targetOf(asker);
  const met = await meet(asker);
  if ('kind' in met) return { target, hello: met, lists: [], reads: [], checks: [], listen: undefined };
  const { era } = met.facts;
  const { responseMs } = config.timeouts;
  const offered = new Set(met.seen.capabilities.keys());
  const { facts: lists, uris } = await walkLists(asker, offered, responseMs * 2);
  const reads = await readEach(asker, uri === undefined ? uris.slice(0, SAMPLE) : [uri], maxEntryBytes);
  const readable = reads.find((read) => read.kind === 'read')?.uri;
  // A server that is known to be of this era is not doubted for what it refuses now.
  const checked =
    era === 'modern'
      ? createUpstream({ ...config, protocol: 'modern' }, { now: asker.now, observer: NOBODY })
      : undefined;
  const about = { era, resources: offered.has('resources'), uri: readable };
  const checks = await checkRefusals({ ...asker, upstream: checked ?? asker.upstream }, about).finally(() =>
    checked?.close(),
  );
  const listen = config.subscribe
    ? await tryListening(asker, met, readable ?? uris[0], responseMs)
    : undefined;
  return { target, hello: met.facts, lists, reads, checks, listen };
}

function targetOf({ config, headers }: Asker): Facts['target'] {
  const { name, process, endpoints, auth, subscribe } = config;
  const credential =
    auth.type === 'header' ? 'header' : headers.authorization === undefined ? 'none' : 'bearer';
  const address =
    process === undefined
      ? endpoints.map(displayUrl).join(', ')
      : [process.command, ...displayArgs(process)].join(' ');
  return { name, address, over: process === undefined ? 'http' : 'process', credential, subscribe };
}

/** Whatever of these a server says again is not shown. */
function secretsIn({ config, bearer }: Inspection): readonly string[] {
  const { auth, process, endpoints } = config;
  return [
    ...(bearer === undefined ? [] : [bearer.reveal()]),
    ...(auth.type === 'bearer' ? [auth.token.reveal()] : []),
    ...(auth.type === 'header' ? [auth.value.reveal()] : []),
    ...(process === undefined ? [] : secretsOf(process)),
    ...endpoints.flatMap((url) => [...url.searchParams.values()]),
  ].filter((secret) => secret.length >= MIN_SECRET_CHARS);
}

const NOBODY: UpstreamObserver = {
  attempt: () => undefined,
  retry: () => undefined,
  upstreamUp: () => undefined,
  circuitOpen: () => undefined,
  upstreamOperation: () => undefined,
};
