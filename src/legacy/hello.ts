/**
 * `initialize` of older clients, answered from what `server/discover` of this revision says. *Never* I/O.
 * *Spec:* 2025-11-25, basic/lifecycle, "Version Negotiation".
 */
import { INVALID_PARAMS, type Refusal, refusal } from '../protocol/errors.ts';
import { memberOf, objectMembers, stringValue } from '../protocol/json.ts';
import { COMMON_CAPABILITIES, LEGACY_VERSIONS, NEWEST_LEGACY_VERSION } from '../protocol/legacy.ts';
import { META_SERVER_INFO } from '../protocol/meta.ts';
import { askable, NO_CAPABILITIES } from '../protocol/questions.ts';
import type { LegacyRequest } from './request.ts';
import type { Ticket } from './tickets.ts';

/** Longest part of a client's own name that is kept. */
const MAX_NAME_CHARS = 128;

export type Presented = Omit<Ticket, 'serial'>;

/** Reads `initialize`. The revision is the client's where it is known, otherwise the newest of the older ones. */
export function readInitialize({ bytes, params }: LegacyRequest): Presented | Refusal {
  const members = (params && objectMembers(bytes, params.start)) ?? [];
  const stringAt = (key: string): string | undefined => {
    const member = memberOf(members, key);
    return member && stringValue(bytes, member);
  };
  const requested = stringAt('protocolVersion');
  if (requested === undefined)
    return refusal(INVALID_PARAMS, 'params.protocolVersion must be a string such as "2025-11-25"');
  const info = memberOf(members, 'clientInfo');
  return {
    version: LEGACY_VERSIONS.includes(requested) ? requested : NEWEST_LEGACY_VERSION,
    capabilities: askable(bytes, memberOf(members, 'capabilities')),
    clientInfo: info === undefined ? '' : named(bytes, info.start),
  };
}

function named(bytes: Uint8Array, at: number): string {
  const members = objectMembers(bytes, at) ?? [];
  const texts = ['name', 'version'].map((key) => {
    const member = memberOf(members, key);
    // A character that is cut in two is none.
    return ((member && stringValue(bytes, member)) ?? '')
      .slice(0, MAX_NAME_CHARS)
      .replace(/[\ud800-\udbff]$/, '');
  });
  return JSON.stringify({ name: texts[0], version: texts[1] });
}

/** What `server/discover` said, as far as an older client is told. */
interface Discovered {
  readonly capabilities?: Readonly<Record<string, Record<string, unknown> | undefined>>;
  readonly instructions?: string;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

/** The result of `initialize`, and whether its client needs a session. @param discovered the JSON text of a result. */
export function initialized(
  discovered: string,
  { version, capabilities }: Presented,
): { readonly result: string; readonly session: 'needed' | 'none' } {
  const said = JSON.parse(discovered) as Discovered;
  const served = COMMON_CAPABILITIES.flatMap((key) => {
    const value = said.capabilities?.[key];
    // What is no object is no capability.
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? [[key, value] as const]
      : [];
  });
  const promises = served.some(
    ([key, value]) => key === 'logging' || value.subscribe === true || value.listChanged === true,
  );
  const result = JSON.stringify({
    protocolVersion: version,
    capabilities: Object.fromEntries(served),
    serverInfo: said._meta?.[META_SERVER_INFO],
    ...(said.instructions !== undefined && { instructions: said.instructions }),
  });
  return { result, session: promises || capabilities !== NO_CAPABILITIES ? 'needed' : 'none' };
}
