/**
 * Server-sent events that carry one JSON text each. Pure.
 *
 * JSON may hold line ends between its tokens; each line then needs a `data:` of its own, and the reader joins
 * them with LF again. *Never* an `id:`: the official client would try to resume with GET.
 * *Spec:* WHATWG HTML, "Server-sent events"; basic/transports/streamable-http.
 */

/** What stands before the JSON of an event, and behind it. */
export const EVENT_OPEN = 'event: message\ndata: ';
export const EVENT_CLOSE = '\n\n';
/** Ends an event that has been begun and cannot be ended well: clients ignore one of a type they do not know. */
export const EVENT_ABANDON = '\nevent: incomplete\n\n';
/** Tells proxies and clients that a quiet stream lives; to be written between events only. */
export const KEEP_ALIVE = ': keep-alive\n\n';

const LF = 0x0a;
const CR = 0x0d;
const LINE_END = /\r\n|\r|\n/g;
const NEXT_LINE = '\ndata: ';

/** One event. `json` is a JSON text. */
export function eventOf(json: string): string {
  return `${EVENT_OPEN}${json.replace(LINE_END, NEXT_LINE)}${EVENT_CLOSE}`;
}

/** A part of a JSON text, with the lines it holds made lines of data. The bytes themselves where it holds none. */
export function dataLines(part: Uint8Array): Uint8Array {
  if (part.indexOf(LF) < 0 && part.indexOf(CR) < 0) return part;
  const bytes = Buffer.from(part.buffer, part.byteOffset, part.byteLength);
  return Buffer.from(bytes.toString('latin1').replace(LINE_END, NEXT_LINE), 'latin1');
}
