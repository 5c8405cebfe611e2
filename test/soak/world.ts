/** All that the actors of a soak share. */
import { Random, seedOf } from '../fuzz/random.ts';
import { CALLERS } from './client.ts';
import { Findings } from './findings.ts';
import { Fleet, type Running } from './fleet.ts';
import { Oracle, ROUTES, type Route, WATCHED } from './oracle.ts';
import { Troubles } from './troubles.ts';
import { type Made, Truth, type UpstreamName } from './truth.ts';
import { SoakUpstream } from './upstream.ts';

const LONG_MS = 600_000;
const SHORT_MS = 2_000;
const NAMES: readonly UpstreamName[] = ['alpha', 'beta', 'gamma'];

/** What happened so far: a soak that saw nothing proves nothing. */
export interface Counts {
  reads: number;
  hits: number;
  /** Reads that had to show the newest version. */
  newest: number;
  walks: number;
  /** Lists of an upstream, in a walk, that had to be exact. */
  exact: number;
  calls: number;
  changes: number;
  listens: number;
  /** Changes heard of. */
  heard: number;
  /** Reads that had to show what the client was told of. */
  told: number;
  troubles: number;
}

export class World {
  readonly seed: number;
  readonly truth = new Truth();
  readonly troubles = new Troubles();
  readonly oracle = new Oracle(this.truth, this.troubles);
  readonly findings = new Findings();
  readonly counts: Counts = {
    ...{ reads: 0, hits: 0, newest: 0, walks: 0, exact: 0, calls: 0 },
    ...{ changes: 0, listens: 0, heard: 0, told: 0, troubles: 0 },
  };
  readonly upstreams: Readonly<Record<UpstreamName, SoakUpstream>>;
  readonly #watchers = new Map<UpstreamName, number>();
  #fleet: Fleet | undefined;

  private constructor(seed: number) {
    this.seed = seed;
    const make = (name: UpstreamName): SoakUpstream =>
      new SoakUpstream({
        name,
        truth: this.truth,
        random: this.random(`upstream ${name}`),
        onWatchers: (count) => {
          this.#watchers.set(name, count);
          this.#noteWatched();
        },
      });
    this.upstreams = { alpha: make('alpha'), beta: make('beta'), gamma: make('gamma') };
    for (const made of shelf()) this.truth.add(made, performance.now());
  }

  static async start(seed: number): Promise<World> {
    const world = new World(seed);
    await Promise.all(NAMES.map((name) => world.upstreams[name].up()));
    const { alpha, beta, gamma } = world.upstreams;
    const fleet = await Fleet.start({ alpha: alpha.url, beta: beta.url, gamma: gamma.url }, world.troubles);
    world.#fleet = fleet;
    fleet.onChange = () => world.#noteWatched();
    world.#noteWatched();
    return world;
  }

  get fleet(): Fleet {
    if (this.#fleet === undefined) throw new Error('the world has not started');
    return this.#fleet;
  }

  /** Choices of one actor. */
  random(actor: string): Random {
    return new Random(seedOf(this.seed, actor));
  }

  /** A gateway that takes new work: one always runs. */
  gateway(random: Random): Running {
    return random.pick(this.fleet.running);
  }

  async close(): Promise<void> {
    await this.#fleet?.close();
    await Promise.all(NAMES.map((name) => this.upstreams[name].down()));
  }

  /** An upstream is watched while as many of the gateways' own streams are open there as gateways run. */
  #noteWatched(): void {
    const at = performance.now();
    const wanted = this.#fleet?.running.length ?? 1;
    for (const name of WATCHED) {
      if ((this.#watchers.get(name) ?? 0) < wanted) this.troubles.begin(`unwatched:${name}`, at);
      else this.troubles.end(`unwatched:${name}`, at);
    }
  }
}

export function routeOf(upstream: UpstreamName): Route {
  return (
    (Object.keys(ROUTES) as Route[]).find((route) =>
      (ROUTES[route] as readonly string[]).includes(upstream),
    ) ?? '/mcp'
  );
}

/** What there is at first: most of it lives so long that only a change can renew it. */
function shelf(): readonly Made[] {
  const made: Made[] = [];
  const number = (at: number): string => String(at).padStart(2, '0');
  for (let at = 0; at < 24; at++) {
    const kind = at % 6;
    made.push({
      uri: `alpha://doc/${number(at)}`,
      upstream: 'alpha',
      ttlMs: kind === 4 ? SHORT_MS : kind === 5 && at > 12 ? 0 : LONG_MS,
      scope: kind === 3 ? 'private' : kind === 2 ? 'turning' : 'public',
    });
  }
  for (let at = 0; at < 12; at++) {
    const scope = (['private', 'public', 'turning'] as const)[at % 3] ?? 'private';
    made.push({ uri: `beta://doc/${number(at)}`, upstream: 'beta', ttlMs: LONG_MS, scope });
  }
  for (let at = 0; at < 6; at++) {
    const ttlMs = at % 2 === 0 ? LONG_MS : SHORT_MS;
    made.push({ uri: `gamma://all/${number(at)}`, upstream: 'gamma', ttlMs, scope: 'private' });
  }
  for (const owner of CALLERS) {
    for (let at = 0; at < 3; at++) {
      const uri = `gamma://of/${owner}/${number(at)}`;
      made.push({ uri, upstream: 'gamma', ttlMs: at === 0 ? LONG_MS : SHORT_MS, scope: 'private', owner });
    }
  }
  return made;
}
