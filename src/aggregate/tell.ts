/** A read method that is never cached (`completion/complete`): one question, one answer. */
import { forwardedHeaders, isBarred } from '../auth/forward.ts';
import type { McpRequest } from '../protocol/classify.ts';
import { paramsText } from '../protocol/params.ts';
import { type AskDeps, type Asking, barred, type Member, type Told } from './ask.ts';

/** A completion holds at most 100 values; this leaves them room. */
const MAX_BYTES = 4 * 1024 * 1024;

export type TellOutcome =
  | Told
  | { readonly kind: 'result'; readonly resultType: string; readonly tail: Uint8Array };

export async function tell(
  deps: Pick<AskDeps, 'logOnce'>,
  member: Member,
  request: McpRequest,
  asking: Asking,
): Promise<TellOutcome> {
  if (isBarred(member.config, asking.head)) return barred(deps, member);
  const waited = asking.waiting();
  const outcome = await member.upstream.read({
    method: request.method,
    name: undefined,
    params: paramsText(asking.params),
    version: request.version,
    headers: forwardedHeaders(member.config, asking.head),
    idempotent: request.row.idempotent,
    signal: asking.signal,
    maxBytes: MAX_BYTES,
  });
  waited();
  if (outcome.kind !== 'answer') return outcome;
  const { answer, status } = outcome;
  if (answer.kind === 'error') return { ...answer, kind: 'error', status };
  return { kind: 'result', resultType: answer.resultType, tail: answer.result.plain() };
}
