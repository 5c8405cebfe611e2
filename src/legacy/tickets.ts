/**
 * Session ids that say themselves what a session is: a client that only connects costs no memory, and any number of
 * them no more (R48).
 *
 * An id is sealed for its caller, its route and this process: one of another caller, another replica or an earlier run
 * is none. *Never* holds a credential.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** What `initialize` settled. */
export interface Ticket {
  /** The revision that was agreed on. */
  readonly version: string;
  /** JSON text of what the client can be asked. */
  readonly capabilities: string;
  /** JSON text of the client's name and version. */
  readonly clientInfo: string;
  /** Counts the ids of this process. */
  readonly serial: number;
}

/** For whom an id is. */
export interface Holder {
  readonly route: string;
  /** The caller's context. */
  readonly partition: string;
}

/** Longer than any id that is given out. */
const MAX_ID_CHARS = 4_096;
const SEAL_BYTES = 24;

export class Tickets {
  readonly #key: Uint8Array;
  #serial = 0;

  constructor(key: Uint8Array = randomBytes(32)) {
    this.#key = key;
  }

  issue({ version, capabilities, clientInfo }: Omit<Ticket, 'serial'>, holder: Holder): string {
    this.#serial++;
    // The serial alone makes ids differ; that they cannot be guessed is the seal's doing.
    const text = Buffer.from(JSON.stringify([this.#serial, version, capabilities, clientInfo])).toString(
      'base64url',
    );
    return `${text}.${this.#seal(text, holder).toString('base64url')}`;
  }

  /** What an id says; undefined for one that was not issued here to this holder. */
  read(id: string, holder: Holder): Ticket | undefined {
    const dot = id.indexOf('.');
    if (id.length > MAX_ID_CHARS || dot < 0) return undefined;
    const text = id.slice(0, dot);
    const given = Buffer.from(id.slice(dot + 1), 'base64url');
    const seal = this.#seal(text, holder);
    // One id has one spelling: what is left behind an id is found again by it.
    if (given.length !== seal.length || !timingSafeEqual(given, seal)) return undefined;
    if (given.toString('base64url') !== id.slice(dot + 1)) return undefined;
    const [serial, version, capabilities, clientInfo] = JSON.parse(
      Buffer.from(text, 'base64url').toString(),
    ) as [number, string, string, string];
    return { serial, version, capabilities, clientInfo };
  }

  #seal(text: string, { route, partition }: Holder): Buffer {
    return createHmac('sha256', this.#key)
      .update(JSON.stringify([text, route, partition]))
      .digest()
      .subarray(0, SEAL_BYTES);
  }
}
