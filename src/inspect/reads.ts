/** Reads a few resources, as clients will. */
import { MISSING_CLIENT_CAPABILITY } from '../protocol/errors.ts';
import type { ReadOutcome } from '../upstream/types.ts';
import { type Asker, ask, hintsOf } from './asker.ts';
import type { ReadFacts } from './facts.ts';
import { completeTail, plainTail } from './hello.ts';
import { troubleOf } from './words.ts';

/** Reads each once. @param maxBytes larger ones are not held by the gateway: they flow, and are not kept. */
export async function readEach(
  asker: Asker,
  uris: readonly string[],
  maxBytes: number,
): Promise<readonly ReadFacts[]> {
  const facts: ReadFacts[] = [];
  for (const uri of uris) {
    const { outcome, ms } = await ask(asker, {
      ...{ method: 'resources/read', params: { uri }, name: uri, maxBytes },
      flow: { array: 'contents' },
    });
    facts.push(factsOf(asker, uri, outcome, ms, maxBytes));
  }
  return facts;
}

function factsOf(
  { config }: Asker,
  uri: string,
  outcome: ReadOutcome,
  ms: number,
  maxBytes: number,
): ReadFacts {
  if (outcome.kind === 'large') {
    outcome.tail.abort();
    return { uri, kind: 'large', aboveBytes: maxBytes };
  }
  const tail = completeTail(outcome);
  if (tail === undefined) {
    const asks = outcome.kind === 'answer' && isQuestion(outcome.answer);
    return asks ? { uri, kind: 'asks' } : { uri, kind: 'failed', trouble: troubleOf(outcome) };
  }
  return {
    ...{ uri, kind: 'read', ms, bytes: tail.length },
    hints: hintsOf(config, 'resources/read', uri, outcome),
    contents: contentsOf(uri, plainTail(tail).contents),
  };
}

/** Whether it wants something of its client, or a client that can be asked. */
function isQuestion(answer: Extract<ReadOutcome, { kind: 'answer' }>['answer']): boolean {
  return answer.kind === 'result'
    ? answer.resultType === 'input_required'
    : answer.code === MISSING_CLIENT_CAPABILITY;
}

function contentsOf(uri: string, contents: unknown): Extract<ReadFacts, { kind: 'read' }>['contents'] {
  if (!Array.isArray(contents)) return 'invalid';
  if (contents.length === 0) return 'none';
  const uris = contents.map((part: { readonly uri?: unknown } | null) => part?.uri);
  if (!uris.every((one) => typeof one === 'string')) return 'invalid';
  return uris.includes(uri) ? 'own-uri' : 'other-uri';
}
