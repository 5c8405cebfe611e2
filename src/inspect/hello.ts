/** Who is there: `server/discover`, some more times for its pace, and how an ordinary answer comes. */
import { readSeen } from '../aggregate/standing.ts';
import { CURRENT_VERSION, META_SERVER_INFO } from '../protocol/meta.ts';
import type { ReadOutcome } from '../upstream/types.ts';
import { type Asker, ask, hintsOf, median, send } from './asker.ts';
import type { HelloFacts } from './facts.ts';
import { troubleOf } from './words.ts';

const METHOD = 'server/discover';
/** A discover result larger than this is none. */
const MAX_DISCOVER_BYTES = 1024 * 1024;
/** Enough to tell a pace from an accident, and no load. */
const REPEATS = 3;

/** What is known of a server that was met, beside the facts. */
export interface Met {
  readonly facts: Extract<HelloFacts, { kind: 'met' }>;
  readonly seen: NonNullable<ReturnType<typeof readSeen>>;
}

/** Asks who is there. */
export async function meet(asker: Asker): Promise<Met | Extract<HelloFacts, { kind: 'unmet' }>> {
  const first = await ask(asker, { method: METHOD, maxBytes: MAX_DISCOVER_BYTES });
  const tail = completeTail(first.outcome);
  const seen = tail && readSeen(tail);
  if (tail === undefined || seen === undefined) return unmet(asker, first.outcome);
  const times: number[] = [];
  for (let at = 0; at < REPEATS; at++)
    times.push((await ask(asker, { method: METHOD, maxBytes: MAX_DISCOVER_BYTES })).ms);
  const era = seen.translated === undefined ? 'modern' : 'older';
  const isHttp = asker.config.process === undefined;
  const media = era === 'modern' && isHttp ? (await send(asker, METHOD, METHOD))?.media : undefined;
  const { serverInfo, instructions } = plainOf(tail);
  return {
    seen,
    facts: {
      kind: 'met',
      era,
      revision: seen.translated ?? CURRENT_VERSION,
      versions: seen.versions,
      serverInfo,
      capabilities: Object.fromEntries(
        [...seen.capabilities].map(([name, value]) => [
          name,
          value instanceof Map ? [...value].flatMap(([key, text]) => (text === 'true' ? [key] : [])) : [],
        ]),
      ),
      instructionsChars: instructions.length,
      hints: hintsOf(asker.config, METHOD, undefined, first.outcome),
      media: media === 'other' ? undefined : media,
      firstMs: first.ms,
      medianMs: median(times),
    },
  };
}

/** The tail of a complete result. */
export function completeTail(outcome: ReadOutcome): Uint8Array | undefined {
  if (outcome.kind !== 'answer' || outcome.answer.kind !== 'result') return undefined;
  return outcome.answer.resultType === 'complete' ? outcome.answer.result.tail : undefined;
}

/** The members of a tail as plain data. */
export function plainTail(tail: Uint8Array): Record<string, unknown> {
  const text = Buffer.from(tail).toString('utf8');
  // It begins with the comma behind the head, and ends with the brace of the message.
  return JSON.parse(text.startsWith(',') ? `{${text.slice(1, -1)}` : '{}') as Record<string, unknown>;
}

function plainOf(tail: Uint8Array) {
  const { _meta: meta, instructions } = plainTail(tail);
  const info = isRecord(meta) ? meta[META_SERVER_INFO] : undefined;
  const textOf = (key: string): string => {
    const value = isRecord(info) ? info[key] : undefined;
    return typeof value === 'string' ? value : '';
  };
  return {
    instructions: typeof instructions === 'string' ? instructions : '',
    serverInfo: isRecord(info) ? { name: textOf('name'), version: textOf('version') } : undefined,
  };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

async function unmet(asker: Asker, outcome: ReadOutcome): Promise<Extract<HelloFacts, { kind: 'unmet' }>> {
  if (outcome.kind === 'large') throw new Error('a discover that flows: it was not allowed to');
  const isResult = outcome.kind === 'answer' && outcome.answer.kind === 'result';
  const trouble = isResult
    ? { kind: 'odd' as const, words: 'a result that is no discover result', status: outcome.status }
    : troubleOf(outcome);
  const hasCome = trouble.kind === 'broken' || trouble.kind === 'refused';
  const seen = hasCome && asker.config.process === undefined ? await send(asker, METHOD, METHOD) : undefined;
  const excerpt = seen?.media === 'json' ? undefined : seen?.beginning.trim();
  return { kind: 'unmet', trouble, excerpt: excerpt === '' ? undefined : excerpt };
}
