/**
 * Node's request, without the object that Node makes of every request's headers to look for `Expect`.
 *
 * A POST is read from the raw list, once: nobody needs that object, and making it costs more than the look-up of a cache
 * hit. Until a request is handed over Node is shown it only where there is something to see; from then on it is what it
 * always was, for whoever asks.
 */
import { type IncomingHttpHeaders, IncomingMessage } from 'node:http';

const NONE: IncomingHttpHeaders = Object.freeze({});
const ofNode = Object.getOwnPropertyDescriptor(IncomingMessage.prototype, 'headers');

export class LeanRequest extends IncomingMessage {
  #arrived = false;

  /** To be called first by who is handed the request. */
  arrived(): void {
    this.#arrived = true;
  }

  static {
    // Node's own is an accessor, too; its types call it a property, which a class must not override with one.
    const { get, set } = ofNode ?? {};
    if (get !== undefined)
      Object.defineProperty(LeanRequest.prototype, 'headers', {
        configurable: true,
        enumerable: true,
        get(this: LeanRequest): IncomingHttpHeaders {
          return this.#arrived || mayMatter(this.rawHeaders) ? get.call(this) : NONE;
        },
        ...(set && { set }),
      });
  }
}

/** True where Node acts on a header before anybody is handed the request. */
function mayMatter(raw: readonly string[]): boolean {
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] as string;
    const isOfThatLength = name.length === EXPECT.length || name.length === UPGRADE.length;
    if (isOfThatLength && [EXPECT, UPGRADE].includes(name.toLowerCase())) return true;
  }
  return false;
}

const EXPECT = 'expect';
const UPGRADE = 'upgrade';
