/** Calls the scripts of `lua.ts`. Rejects as ioredis does, and never sends anything twice by itself. */
import { hash } from 'node:crypto';
import type { Client } from './connect.ts';
import { BUMP, LOOKUP, STORE, SYNC } from './lua.ts';
import type { Names } from './names.ts';

/** Tokens are whole microseconds of Redis' clock, never going back. */
export interface LookupReply {
  /** Now, and for the load that starts now. */
  readonly token: number;
  /** Token of when the order was made that `token` is of. */
  readonly born: number;
  readonly corruptCount: number;
  /** The envelope of each slot, in their order. */
  readonly found: readonly (Buffer | undefined)[];
}

export interface StoreRequest {
  readonly key: string;
  readonly fields: readonly string[];
  readonly token: number;
  readonly born: number;
  readonly keepMs: number;
  readonly envelope: Buffer;
}

export interface BumpReply {
  readonly token: number;
  /** Token of the bump before. */
  readonly previous: number;
  readonly born: number;
}

export interface SyncReply {
  /** Token of the last bump. */
  readonly last: number;
  /** The same before this call, which may have been a bump. */
  readonly lastFound: number;
  readonly born: number;
  readonly now: number;
  /** Whether this call was a bump of everything. */
  readonly raised: boolean;
}

/** `floor`: highest token known here of the upstream. */
export interface Scripts {
  lookup(
    names: Names,
    floor: number,
    mostBytes: number,
    slots: readonly { readonly key: string; readonly fields: readonly string[] }[],
  ): Promise<LookupReply>;
  store(names: Names, floor: number, request: StoreRequest): Promise<'stored' | 'superseded'>;
  /** @param message the beginning of what is told, see `messages.ts`. */
  bump(names: Names, floor: number, message: string, fields: readonly string[]): Promise<BumpReply>;
  /** @param seen highest token of a bump known here. @param given highest token of a load given out here. */
  sync(names: Names, seen: number, given: number): Promise<SyncReply>;
}

type Argument = string | number | Buffer;

interface Script {
  readonly text: string;
  readonly sha: string;
}

const script = (text: string): Script => ({ text, sha: hash('sha1', text, 'hex') });
const SCRIPTS = { lookup: script(LOOKUP), store: script(STORE), bump: script(BUMP), sync: script(SYNC) };

/** @param epoch changes whenever the connection was lost: what was begun before is not sent after. */
export function createScripts(client: Client, epoch: () => number): Scripts {
  async function run(
    { text, sha }: Script,
    keys: readonly string[],
    args: readonly Argument[],
  ): Promise<unknown> {
    const before = epoch();
    try {
      return await client.callBuffer('evalsha', sha, keys.length, ...keys, ...args);
    } catch (error) {
      if (!(error instanceof Error && error.message.includes('NOSCRIPT')) || epoch() !== before) throw error;
      return client.callBuffer('eval', text, keys.length, ...keys, ...args);
    }
  }

  return {
    async lookup(names, floor, mostBytes, slots) {
      const keys = [names.hash, ...slots.map(({ key }) => names.entry(key))];
      const args: Argument[] = [floor, mostBytes];
      for (const { fields } of slots) args.push(fields.length, ...fields);
      const reply = await run(SCRIPTS.lookup, keys, args);
      const [token, born, corruptCount] = integers(reply, 3);
      const found = (reply as unknown[]).slice(3).map((raw) => (Buffer.isBuffer(raw) ? raw : undefined));
      return { token, born, corruptCount, found };
    },
    async store(names, floor, { key, fields, token, born, keepMs, envelope }) {
      const keys = [names.hash, names.entry(key)];
      const reply = await run(SCRIPTS.store, keys, [floor, token, born, keepMs, envelope, ...fields]);
      return reply === 1 ? 'stored' : 'superseded';
    },
    async bump(names, floor, message, fields) {
      const reply = await run(SCRIPTS.bump, [names.hash], [floor, names.channel, message, ...fields]);
      const [token, previous, born] = integers(reply, 3);
      return { token, previous, born };
    },
    async sync(names, seen, given) {
      const reply = await run(SCRIPTS.sync, [names.hash], [seen, given]);
      const [last, lastFound, born, now, raised] = integers(reply, 5);
      return { last, lastFound, born, now, raised: raised === 1 };
    },
  };
}

/** The integers that a reply begins with. A server that answers otherwise is none that can be worked with. */
function integers(reply: unknown, count: number): [number, number, number, number, number] {
  const head = Array.isArray(reply) ? reply.slice(0, count) : [];
  if (head.length < count || !head.every(Number.isSafeInteger))
    throw new TypeError('not what the script says');
  return head as ReturnType<typeof integers>;
}
