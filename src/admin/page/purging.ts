/** Purging from the page: asked first, said afterwards. */
import { post } from './client.ts';
import { PURGE_PATH } from './contract.ts';
import { allowed, confirmed } from './dialogs.ts';
import { foreign, h } from './dom.ts';
import { say } from './saying.ts';

/** @returns whether it was done. */
export async function purgeUpstream(upstream: string): Promise<boolean> {
  const what = h(
    'p',
    {},
    'Everything that is cached of ',
    h('b', {}, upstream),
    ' is dropped, for every caller.',
  );
  if (!(await confirmed('Purge an upstream?', what, 'Purge'))) return false;
  return purge({ upstream }, `What was cached of ${upstream} is dropped`);
}

export async function purgeResource(upstream: string, uri: string): Promise<boolean> {
  const what = h(
    'p',
    {},
    ...['What is cached of ', h('code', {}, foreign(uri)), ', of ', h('b', {}, upstream)],
    ' is dropped, for every caller.',
  );
  if (!(await confirmed('Purge a resource?', what, 'Purge'))) return false;
  return purge({ upstream, uri }, 'What was cached of the resource is dropped');
}

async function purge(body: object, done: string): Promise<boolean> {
  const got = await allowed(() => post<{ purged: string }>(PURGE_PATH, body));
  switch (got.kind) {
    case 'ok':
      say(`${done}${got.value.purged === 'all-replicas' ? ', on all replicas' : ', on this replica'}.`);
      return true;
    case 'refused':
      say(`Not purged: ${got.message}`);
      return false;
    case 'unreachable':
      say('Not purged: the gateway does not answer.');
      return false;
  }
}
