/** Clients that listen for a while, leave, and come back. */
import type { Random } from '../fuzz/random.ts';
import { repeat, rest } from './actors.ts';
import { PASSED_ON_MS } from './bounds.ts';
import { ask, CALLERS } from './client.ts';
import type { Running } from './fleet.ts';
import { type Ear, openEar } from './listen-client.ts';
import { ACKNOWLEDGED, type Listen, ListenOracle, type Message, UPDATED } from './listen-oracle.ts';
import { ROUTES, type Route, type Told } from './oracle.ts';
import { routeOf, type World } from './world.ts';

/** How often it is asked what should have come. */
const LOOK_MS = 500;
/** How long a client stays, least and most. */
const STAY_MS = [1_000, 40_000] as const;
const AWAY_MS = [50, 2_000] as const;
const MOST_URIS = 12;

/** One client, again and again. */
export function listens(world: World, random: Random, signal: AbortSignal): Promise<void> {
  return repeat(signal, random, AWAY_MS, () => listenOnce(world, random, signal));
}

async function listenOnce(world: World, random: Random, signal: AbortSignal): Promise<void> {
  const route: Route = random.once(3) ? '/own' : '/mcp';
  const caller = random.pick(CALLERS);
  const running = world.gateway(random);
  // As behind a balancer: what one gateway announced, any of them keeps.
  const announced = await announces(world.gateway(random), route, caller);
  if (announced === undefined || !world.fleet.running.includes(running)) return;
  const listen = choose(world, random, { route, caller, running, announced });
  await hear(world, listen, { running, route, random, stayMs: random.between(...STAY_MS), signal });
}

/** Whether the gateway says that it tells of changes; undefined when it does not say. */
async function announces(
  running: Running,
  route: Route,
  caller: string,
): Promise<Listen['announced'] | undefined> {
  const { got, answer } = await ask(running, route, caller, 'server/discover');
  if (got === undefined || answer.code !== undefined) return undefined;
  const { subscribe, listChanged } = got.json.result?.capabilities?.resources ?? {};
  return subscribe === true && listChanged === true ? 'announced' : 'not announced';
}

interface Choice {
  readonly route: Route;
  readonly caller: string;
  readonly running: Running;
  readonly announced: Listen['announced'];
}

function choose(world: World, random: Random, { route, caller, running, announced }: Choice): Listen {
  const shown = ROUTES[route].flatMap((upstream) => world.truth.shown(upstream, caller));
  const uris = new Set(random.many(random.below(MOST_URIS + 1), () => random.pick(shown).uri));
  return {
    id: random.once(2) ? random.below(1_000) : `listen ${random.below(1_000)}`,
    caller,
    gateway: running.name,
    upstreams: ROUTES[route],
    uris: [...uris],
    lists: uris.size === 0 || random.once(2) ? 'asked' : 'not asked',
    openedAt: performance.now(),
    announced,
  };
}

interface Stay {
  readonly running: Running;
  readonly route: Route;
  readonly random: Random;
  readonly stayMs: number;
  readonly signal: AbortSignal;
}

async function hear(
  world: World,
  listen: Listen,
  { running, route, random, stayMs, signal }: Stay,
): Promise<void> {
  const { counts, findings, fleet } = world;
  const oracle = new ListenOracle(listen, world.truth, world.troubles);
  counts.listens++;
  const gone = new AbortController();
  const look = setInterval(() => findings.add(...oracle.due(performance.now())), LOOK_MS);
  const ear: Ear = openEar(running.gateway.mcp, route, listen, {
    heard: (message: Message) => {
      if (message.method !== undefined && message.method !== ACKNOWLEDGED) counts.heard++;
      const toldAt = performance.now();
      findings.add(...oracle.heard(message, toldAt));
      if (message.method === UPDATED)
        void readTold(world, random, listen.caller, String(message.params?.uri), {
          at: toldAt,
          by: running.name,
        });
    },
    closed: (detail) => {
      const why = fleet.running.includes(running) ? 'by itself' : 'gateway stops';
      findings.add(...oracle.closed(why).map(({ kind, what }) => ({ kind, what: `${what} ${detail}` })));
      gone.abort();
    },
  });
  await rest(AbortSignal.any([signal, gone.signal]), stayMs);
  clearInterval(look);
  if (!gone.signal.aborted) findings.add(...oracle.due(performance.now()));
  ear.leave();
}

/** What a client does that was told: it reads, wherever it is sent. */
async function readTold(
  world: World,
  random: Random,
  caller: string,
  uri: string,
  told: Told,
): Promise<void> {
  const resource = world.truth.find(uri);
  if (resource === undefined) return;
  const running = world.gateway(random);
  if (running.name !== told.by) await new Promise((resolve) => setTimeout(resolve, PASSED_ON_MS));
  const { asked, answer } = await ask(running, routeOf(resource.upstream), caller, 'resources/read', { uri });
  const findings = world.oracle.readAfterTold(asked, uri, answer, told);
  if (findings !== undefined) world.counts.told++;
  world.findings.add(...world.oracle.read(asked, uri, answer), ...(findings ?? []));
}
