/** Params as an older client would send them. */
import { type Member, memberOf, objectMembers, textOf } from '../protocol/json.ts';
import { META_CAPABILITIES, META_CLIENT_INFO, META_LOG_LEVEL, META_VERSION } from '../protocol/meta.ts';

/** What the requests of this era say of themselves, each. */
const ENVELOPE: ReadonlySet<string> = new Set([
  META_VERSION,
  META_CAPABILITIES,
  META_CLIENT_INFO,
  META_LOG_LEVEL,
]);

/** The same params, without what of `_meta` only this era knows. */
export function withoutEnvelope(params: string): string {
  const bytes = Buffer.from(params);
  const members = objectMembers(bytes, 0) ?? [];
  const meta = memberOf(members, '_meta');
  const inner = meta && objectMembers(bytes, meta.start);
  if (inner === undefined || !inner.some(({ key }) => ENVELOPE.has(key))) return params;
  const text = (all: readonly Member[]): string =>
    all.map((member) => `${JSON.stringify(member.key)}:${textOf(bytes, member)}`).join(',');
  const others = text(members.filter((member) => member !== meta));
  const kept = inner.filter(({ key }) => !ENVELOPE.has(key));
  if (kept.length === 0) return `{${others}}`;
  return `{${others === '' ? '' : `${others},`}"_meta":{${text(kept)}}}`;
}
