/** What a request of this era says of itself, and an older server is not told. *Never* I/O. */
import { type Member, memberOf, objectMembers, textOf } from '../protocol/json.ts';
import { META_ENVELOPE } from '../protocol/meta.ts';

/** What answers a question of this era: an older server asks otherwise. */
const ANSWERS: ReadonlySet<string> = new Set(['inputResponses', 'requestState']);

/** The params as an older client would send them. */
export function withoutEnvelope(params: string): string {
  const bytes = Buffer.from(params);
  const all = objectMembers(bytes, 0) ?? [];
  const members = all.filter(({ key }) => !ANSWERS.has(key));
  const meta = memberOf(members, '_meta');
  const inner = meta && objectMembers(bytes, meta.start);
  const isPlain = members.length === all.length && inner?.some(({ key }) => META_ENVELOPE.has(key)) !== true;
  if (isPlain) return params;
  const text = (some: readonly Member[]): string =>
    some.map((member) => `${JSON.stringify(member.key)}:${textOf(bytes, member)}`).join(',');
  const others = text(members.filter((member) => member !== meta));
  const kept = (inner ?? []).filter(({ key }) => !META_ENVELOPE.has(key));
  if (kept.length === 0) return `{${others}}`;
  return `{${others === '' ? '' : `${others},`}"_meta":{${text(kept)}}}`;
}
