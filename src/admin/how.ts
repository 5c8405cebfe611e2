/** `Cache-Status` and `Age` in a sentence. Pure. *Spec:* RFC 9211. */
import type { How } from './page/contract.ts';

type Told = Pick<How, 'kind' | 'means' | 'cacheStatus' | 'ageSeconds'>;

/** What the headers of an answer say of how it came about. */
export function explain(headers: Readonly<Record<string, string>>): Told {
  const { 'cache-status': cacheStatus = '', age } = headers;
  const words = new Map(
    cacheStatus.split('; ').map((part) => {
      const [key = '', value = ''] = part.split('=');
      return [key, value] as const;
    }),
  );
  return {
    ...meaning(words),
    cacheStatus,
    ...(age !== undefined && { ageSeconds: Number(age) }),
  };
}

function meaning(words: ReadonlyMap<string, string>): Pick<Told, 'kind' | 'means'> {
  const detail = words.get('detail');
  if (words.has('hit')) {
    const where = detail === 'redis' ? 'Redis' : 'memory';
    return { kind: 'hit', means: `Answered from ${where}; no upstream was asked.` };
  }
  switch (words.get('fwd')) {
    case undefined:
      return { kind: 'none', means: 'The gateway answered this itself.' };
    case 'bypass':
      return { kind: 'bypass', means: `${BYPASSED} ${BYPASSES.get(detail) ?? ''}`.trimEnd() };
    case 'stale':
      if (detail === 'stale-if-error')
        return { kind: 'stale', means: 'The upstream failed; the last good answer stands in.' };
      return { kind: 'miss', means: `${AGAIN.get(detail) ?? AGAIN_PLAIN} ${kept(words)}` };
    // Of several upstreams, or of those that were asked in vain.
    case 'miss':
      return { kind: 'miss', means: `At least one upstream was asked. ${kept(words)}`.trimEnd() };
    default:
      return { kind: 'miss', means: `${words.has('collapsed') ? SHARED : ASKED} ${kept(words)}` };
  }
}

const BYPASSED = 'The cache was left out.';
const BYPASSES = new Map<string | undefined, string>([
  ['disabled', 'The route has cache: false.'],
  ['mrtr', 'The request carries an answer to a question.'],
]);
const ASKED = 'Nothing was cached for this caller; the upstream was asked.';
const SHARED = 'Another request for the same was under way; its answer was shared.';
const AGAIN_PLAIN = 'What was cached had had its time; the upstream was asked again.';
const AGAIN = new Map<string | undefined, string>([
  ['rewatch', 'What was cached may have changed unnoticed; the upstream was asked again.'],
]);

const KEPT = new Map<string | undefined, string>([
  ['ttl-zero', 'It is not kept: it has no time to live.'],
  ['too-large', 'It is not kept: it is too large.'],
  ['superseded', 'It is not kept: something newer came first.'],
  ['incomplete', 'It is not kept: upstreams are missing in it.'],
]);

function kept(words: ReadonlyMap<string, string>): string {
  if (words.has('stored')) return 'The answer is kept.';
  return KEPT.get(words.get('detail')) ?? (words.get('fwd') === 'miss' ? '' : 'It is not kept.');
}
