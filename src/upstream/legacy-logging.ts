/** Log levels: older servers are told once a session, clients of this revision say with each request. *Never* I/O. */
import { memberOf, objectMembers, stringValue } from '../protocol/json.ts';
import { LOG_LEVELS } from '../protocol/legacy.ts';
import { META_LOG_LEVEL } from '../protocol/meta.ts';
import { readNotice } from '../protocol/notice.ts';

const LOGGED = 'notifications/message';

/** How little is said: 0 is everything. */
export type Quiet = number;
/** So quiet is a server that was told nothing, to whoever asked for nothing. */
export const SILENT: Quiet = LOG_LEVELS.length;

/** What a request asks for. @param params JSON text. */
export function quietIn(params: string): Quiet {
  if (!params.includes(META_LOG_LEVEL)) return SILENT;
  const bytes = Buffer.from(params);
  const meta = memberOf(objectMembers(bytes, 0) ?? [], '_meta');
  const level = meta && memberOf(objectMembers(bytes, meta.start) ?? [], META_LOG_LEVEL);
  return indexOf(level && stringValue(bytes, level));
}

/** `params` of `logging/setLevel`, JSON text. */
export function levelParams(quiet: Quiet): string {
  return `{"level":"${LOG_LEVELS[quiet]}"}`;
}

export function isLog(message: Uint8Array): boolean {
  const method = memberOf(objectMembers(message, 0) ?? [], 'method');
  return method !== undefined && stringValue(message, method) === LOGGED;
}

/** Whether one who asked for so much hears this: all but logs, and of those what is loud enough. */
export function isHeard(message: Uint8Array, quiet: Quiet): boolean {
  if (!isLog(message)) return true;
  const notice = readNotice(message);
  const level = notice.kind === 'notification' ? memberOf(notice.params?.members ?? [], 'level') : undefined;
  const loud = indexOf(level && stringValue(message, level));
  return quiet < SILENT && (loud === SILENT || loud >= quiet);
}

function indexOf(level: string | undefined): Quiet {
  const at = level === undefined ? -1 : LOG_LEVELS.indexOf(level);
  return at < 0 ? SILENT : at;
}
