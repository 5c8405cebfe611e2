/** What goes wrong in a soak, on purpose: upstreams, Redis and gateways go away and come back. */
import type { Random } from '../fuzz/random.ts';
import { changeOne, rest } from './actors.ts';
import { OTHERS_EVERY_MS, RELOAD_EVERY_MS, RESTART_EVERY_MS, WATCHED_WITHIN_MS } from './bounds.ts';
import type { GatewayName } from './fleet.ts';
import { WATCHED } from './oracle.ts';
import type { UpstreamName } from './truth.ts';
import type { World } from './world.ts';

type Kind = UpstreamName | 'redis restarts' | 'redis is flushed' | 'reload' | GatewayName;

/** How long an upstream or Redis stays away. */
const AWAY_MS = [200, 2_000] as const;
/** Changes of an upstream while it is away, and again when it has just come back. */
const UNHEARD = 5;

/** See the file's head. One trouble after the other; now and then two at once. */
export class Mischief {
  readonly #world: World;
  readonly #random: Random;
  readonly #lastAt = new Map<string, number>();
  readonly #unwatchedTold = new Set<string>();

  constructor(world: World, random: Random) {
    this.#world = world;
    this.#random = random;
  }

  async once(): Promise<void> {
    const kinds = this.#due();
    const first = this.#random.pick(kinds);
    if (first === undefined) return;
    const second = this.#random.once(4)
      ? this.#random.pick(kinds.filter((kind) => kind !== first))
      : undefined;
    await Promise.all([first, second].map((kind) => kind && this.#do(kind)));
  }

  /** An upstream that is up and yet not listened to for long: its streams are not opened again. */
  look(): void {
    const { troubles, findings } = this.#world;
    for (const name of WATCHED) {
      const since = troubles.since(`unwatched:${name}`);
      if (since === undefined || troubles.since(`down:${name}`) !== undefined) continue;
      const forMs = performance.now() - since;
      if (forMs < WATCHED_WITHIN_MS || this.#unwatchedTold.has(`${name} ${since}`)) continue;
      this.#unwatchedTold.add(`${name} ${since}`);
      findings.add({
        kind: 'unwatched',
        what: `${name} is up, and not listened to by all gateways for ${forMs} ms`,
      });
    }
  }

  #due(): readonly Kind[] {
    const at = performance.now();
    const { fleet } = this.#world;
    const kinds: readonly Kind[] = ['alpha', 'beta', 'gamma'];
    const others: readonly Kind[] =
      fleet.redis === undefined ? [] : ['redis restarts', 'redis is flushed', this.#random.pick(['a', 'b'])];
    const isDue = (key: string, everyMs: number): boolean =>
      at - (this.#lastAt.get(key) ?? Number.NEGATIVE_INFINITY) >= everyMs;
    return [
      ...kinds.filter((kind) => isDue(kind, RESTART_EVERY_MS)),
      ...others.filter((kind) => isDue(keyOf(kind), OTHERS_EVERY_MS)),
      ...(isDue('reload', RELOAD_EVERY_MS) ? (['reload'] as const) : []),
    ];
  }

  async #do(kind: Kind): Promise<void> {
    const { fleet, troubles, findings, counts, upstreams } = this.#world;
    const { redis } = fleet;
    counts.troubles++;
    switch (kind) {
      case 'redis restarts':
        if (redis === undefined) break;
        troubles.begin('redis', performance.now());
        await redis.kill();
        await this.#away();
        await redis.start();
        troubles.end('redis', performance.now());
        break;
      case 'redis is flushed':
        troubles.begin('redis', performance.now());
        // It may be on its way up again.
        await redis?.admin.flushall().catch(() => undefined);
        troubles.end('redis', performance.now());
        break;
      case 'reload':
        findings.add(...(await fleet.reload()));
        break;
      case 'a':
      case 'b': {
        findings.add(...(await fleet.end(kind)));
        await this.#away();
        await fleet.begin(kind);
        break;
      }
      default:
        troubles.begin(`down:${kind}`, performance.now());
        await upstreams[kind].down();
        await this.#away();
        await this.#unheard(kind);
        await upstreams[kind].up();
        troubles.end(`down:${kind}`, performance.now());
        await this.#unheard(kind);
    }
    this.#lastAt.set(keyOf(kind), performance.now());
  }

  /** Changes that are told to nobody, or to those only who listen again already. */
  async #unheard(name: UpstreamName): Promise<void> {
    for (let count = 0; count < UNHEARD; count++) {
      changeOne(this.#world, this.#random, name);
      await rest(new AbortController().signal, this.#random.below(100));
    }
  }

  #away(): Promise<void> {
    return rest(new AbortController().signal, this.#random.between(...AWAY_MS));
  }
}

function keyOf(kind: Kind): string {
  return kind === 'a' || kind === 'b' ? 'gateway' : kind;
}
