/** What a purge does: the cache is told, and the other replicas through it. */
import type { Cache } from '../cache/through.ts';
import type { PurgeOutcome, PurgeRequest } from './purge.ts';

type Purged = Pick<Cache, 'invalidateUpstream' | 'invalidateMethod' | 'invalidateUri'>;

/** Drops what was asked for, for every caller. @param upstreams the configured names. */
export async function purge(
  cache: Purged,
  upstreams: readonly string[],
  request: PurgeRequest,
): Promise<PurgeOutcome> {
  const told = await Promise.all(ends(cache, upstreams, request));
  return { purged: told.every(Boolean) ? 'all-replicas' : 'this-replica' };
}

function ends(
  cache: Purged,
  upstreams: readonly string[],
  request: PurgeRequest,
): readonly Promise<boolean>[] {
  switch (request.kind) {
    case 'all':
      return upstreams.map((upstream) => cache.invalidateUpstream(upstream, 'admin'));
    case 'upstream':
      return [cache.invalidateUpstream(request.upstream, 'admin')];
    case 'resource':
      return [cache.invalidateUri(request.upstream, request.uri, 'admin')];
    case 'method':
      return [cache.invalidateMethod(request.upstream, request.method, 'admin')];
  }
}
