/**
 * The fast lane: a read that came before, byte by byte but for its id, is not taken apart again.
 *
 * Clients ask for a resource in the same words each time, and to understand them would be most of what a hit costs.
 * Remembered is what was understood of a request: *never* an answer, and *never* a header but the three that mirror
 * the body. Who asks, who owns it and what is fresh is decided anew each time. It says what `classify` says, always:
 * tested with arbitrary requests.
 */
import { BoundedMap } from './bounded-map.ts';
import { type Body, classify, MAX_ID_LENGTH, type McpRequest, type Message } from './classify.ts';
import { type Head, METHOD_HEADER, NAME_HEADER, PROTOCOL_VERSION_HEADER } from './headers.ts';
import { memberOf, wholeObject } from './json.ts';

const READ = 'resources/read';

/** Names that are remembered; the one that came first is forgotten first. */
export const REPEATED_NAMES = 4_096;
/** Wordings of a name: clients differ in what they tell of themselves. */
export const REPEATED_WORDINGS = 4;
/** Longest body that is remembered. */
export const REPEATED_BYTES = 2 * 1024;

/** What was understood of a body, whatever its id. */
interface Wording {
  /** What stands before the id, and behind it. */
  readonly before: Buffer;
  readonly after: Buffer;
  readonly understood: Pick<McpRequest, 'row' | 'method' | 'name' | 'version' | 'params' | 'keys'>;
}

/** *Bounded by* the constants above: 32 MiB of bodies. */
export class Repeats {
  readonly #byName = new BoundedMap<string, Wording[]>(REPEATED_NAMES);

  /** What is this request? As `classify`. */
  classify(head: Head, body: Body): Message {
    const { headers } = head;
    const name = headers.get(NAME_HEADER);
    const mayRepeat =
      name !== undefined &&
      headers.get(METHOD_HEADER) === READ &&
      head.duplicated === undefined &&
      body.kind === 'whole' &&
      body.bytes.length <= REPEATED_BYTES;
    if (!mayRepeat) return classify(head, body);
    const wordings = this.#byName.get(name);
    if (wordings === undefined) return this.#takeApart(name, [], head, body.bytes);
    const version = headers.get(PROTOCOL_VERSION_HEADER);
    for (const wording of wordings) {
      const id = wording.understood.version === version ? idWithin(wording, body.bytes) : undefined;
      if (id !== undefined) return { kind: 'request', request: requestOf(wording, id, head, body) };
    }
    return this.#takeApart(name, wordings, head, body.bytes);
  }

  #takeApart(name: string, wordings: Wording[], head: Head, bytes: Uint8Array): Message {
    // A copy: the bytes received are a view into a larger piece, all of which would be kept.
    const copy = Buffer.from(new Uint8Array(bytes).buffer);
    const message = classify(head, { kind: 'whole', bytes: copy });
    if (message.kind !== 'request') return message;
    const id = memberOf(wholeObject(copy) ?? [], 'id');
    if (id === undefined || usualId(copy, id.start, id.end) === undefined) return message;
    const { row, method, name: uri, version, params } = message.request;
    const understood = { row, method, name: uri, version, params, keys: new Map<string, string>() };
    if (wordings.length >= REPEATED_WORDINGS) wordings.shift();
    wordings.push({ before: copy.subarray(0, id.start), after: copy.subarray(id.end), understood });
    this.#byName.set(name, wordings);
    return message;
  }
}

/** The id, when all else is the same: then the id is all that could be understood otherwise. */
function idWithin({ before, after }: Wording, bytes: Uint8Array): string | undefined {
  const start = before.length;
  const end = bytes.length - after.length;
  if (end <= start || end - start > MAX_ID_LENGTH) return undefined;
  if (before.compare(bytes, 0, start) !== 0 || after.compare(bytes, end) !== 0) return undefined;
  return usualId(bytes, start, end);
}

/** One JSON token, whatever stands beside it: an integer, or a string of visible ASCII without escapes. */
function usualId(bytes: Uint8Array, start: number, end: number): string | undefined {
  let text = '';
  for (let i = start; i < end; i++) text += String.fromCharCode(bytes[i] as number);
  return USUAL_ID.test(text) ? text : undefined;
}

const USUAL_ID = /^(?:-?(?:0|[1-9]\d*)|"[ !#-[\]-~]*")$/;

function requestOf({ understood }: Wording, id: string, head: Head, body: Body): McpRequest {
  const { row, method, name, version, params, keys } = understood;
  return { row, method, name, version, id, params, head, body, keys };
}
