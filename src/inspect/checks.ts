/** Asks what a server must refuse: nothing that would change anything, were it taken. */
import {
  HEADER_MISMATCH,
  INVALID_PARAMS,
  METHOD_NOT_FOUND,
  UNSUPPORTED_VERSION,
} from '../protocol/errors.ts';
import type { ReadOutcome } from '../upstream/types.ts';
import { type Asker, ask, send } from './asker.ts';
import type { CheckFacts, CheckName } from './facts.ts';
import { troubleOf } from './words.ts';

/** Nobody has these. */
const NO_VERSION = '1900-01-01';
const NO_METHOD = 'dev.headgate/inspect';
const NO_URI = 'headgate-inspect://nothing/is-here';
/** What is asked for is a refusal. */
const MAX_BYTES = 1024 * 1024;

/** What must come: one of these codes, and over HTTP of a server of this era one of these statuses. */
interface Expected {
  readonly codes: readonly number[];
  readonly statuses: readonly number[];
}

/** *Spec:* basic/transports/streamable-http, "Server Validation"; basic/versioning; server/resources. */
const EXPECTED: Readonly<Record<CheckName, Expected>> = {
  'method-header': { codes: [HEADER_MISMATCH], statuses: [400] },
  'name-header': { codes: [HEADER_MISMATCH], statuses: [400] },
  'unknown-version': { codes: [UNSUPPORTED_VERSION], statuses: [400] },
  'unknown-method': { codes: [METHOD_NOT_FOUND], statuses: [404] },
  'unknown-resource': { codes: [INVALID_PARAMS], statuses: [200, 400, 404] },
};

/** @param uri a resource of its own; undefined where it has none. */
export async function checkRefusals(
  asker: Asker,
  about: { readonly era: 'modern' | 'older'; readonly resources: boolean; readonly uri: string | undefined },
): Promise<readonly CheckFacts[]> {
  const isHttp = asker.config.process === undefined;
  const isModern = about.era === 'modern';
  const checks: CheckFacts[] = [];
  const read = async (name: CheckName, ...[question]: [Omit<Parameters<typeof ask>[1], 'maxBytes'>]) => {
    const { outcome } = await ask(asker, { ...question, maxBytes: MAX_BYTES });
    checks.push(judged(name, outcome, isHttp && isModern));
  };
  if (isModern && isHttp) {
    checks.push(await checkMethodHeader(asker));
    if (about.uri !== undefined)
      await read('name-header', { method: 'resources/read', params: { uri: about.uri }, name: NO_URI });
  }
  if (isModern) {
    await read('unknown-version', { method: 'server/discover', version: NO_VERSION });
    await read('unknown-method', { method: NO_METHOD });
  }
  if (about.resources)
    await read('unknown-resource', { method: 'resources/read', params: { uri: NO_URI }, name: NO_URI });
  return checks;
}

async function checkMethodHeader(asker: Asker): Promise<CheckFacts> {
  const name = 'method-header';
  const seen = await send(asker, 'tools/list', 'server/discover');
  if (seen === undefined) return { name, outcome: 'unanswered', came: 'nothing' };
  const { answer, status } = seen;
  if (answer?.kind === 'error') return judged(name, { kind: 'answer', answer, status, receivedAt: 0 }, true);
  // An event stream begins with success, whatever it says then.
  const isTaken = status < 300 && !seen.beginning.includes(`"code":${HEADER_MISMATCH}`);
  return { name, outcome: isTaken ? 'accepted' : 'refused-otherwise', came: `HTTP ${status}` };
}

function judged(name: CheckName, outcome: ReadOutcome, looksAtStatus: boolean): CheckFacts {
  if (outcome.kind === 'large' || (outcome.kind === 'answer' && outcome.answer.kind === 'result'))
    return { name, outcome: 'accepted', came: 'a result' };
  const { words: came } = troubleOf(outcome);
  if (outcome.kind === 'failure') return { name, outcome: 'unanswered', came };
  const { codes, statuses } = EXPECTED[name];
  const isExpected =
    outcome.kind === 'answer' &&
    outcome.answer.kind === 'error' &&
    codes.includes(outcome.answer.code) &&
    (name !== 'unknown-version' || saysSupported(outcome.answer.data)) &&
    (!looksAtStatus || statuses.includes(outcome.status));
  return { name, outcome: isExpected ? 'refused' : 'refused-otherwise', came };
}

/** Whoever refuses a revision says which ones there are: clients go on with one of these. */
function saysSupported(data: string | undefined): boolean {
  const parsed: unknown = data === undefined ? undefined : JSON.parse(data);
  const supported = (parsed as { readonly supported?: unknown } | null | undefined)?.supported;
  return (
    Array.isArray(supported) && supported.length > 0 && supported.every((one) => typeof one === 'string')
  );
}
