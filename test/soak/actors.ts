/** Who does something in a soak: readers, walkers, callers, and the upstreams' own changes. Each acts until told. */
import type { Random } from '../fuzz/random.ts';
import { ask, CALLERS, type Page, pageOf } from './client.ts';
import type { Running } from './fleet.ts';
import { type Answer, type Asked, type Item, ROUTES, type Route, type Walk } from './oracle.ts';
import { newest, type Resource, type UpstreamName } from './truth.ts';
import { echoOf } from './upstream.ts';
import { routeOf, type World } from './world.ts';

/** Does something again and again. @param pauseMs between, least and most. */
export async function repeat(
  signal: AbortSignal,
  random: Random,
  pauseMs: readonly [least: number, most: number],
  act: () => Promise<void> | void,
): Promise<void> {
  while (!signal.aborted) {
    await act();
    await rest(signal, random.between(...pauseMs));
  }
}

/** Waits, or less when it is over. */
export function rest(signal: AbortSignal, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
    if (signal.aborted) done();
  });
}

const UPSTREAMS: readonly UpstreamName[] = ['alpha', 'alpha', 'beta', 'gamma'];

/** Reads something, often one that others read, too. */
export async function readOne(world: World, random: Random): Promise<void> {
  const upstream = random.pick(UPSTREAMS);
  const caller = random.pick(CALLERS);
  const all = world.truth.of(upstream);
  const isHot = !random.once(3);
  const resource = all[random.below(isHot ? Math.min(8, all.length) : all.length)];
  if (resource !== undefined) await readOf(world, world.gateway(random), caller, resource);
}

async function readOf(
  world: World,
  running: Running,
  caller: string,
  { uri, upstream }: Resource,
): Promise<void> {
  const { oracle, counts, findings } = world;
  const { asked, answer } = await ask(running, routeOf(upstream), caller, 'resources/read', { uri });
  counts.reads++;
  if (answer.cacheStatus.includes('; hit')) counts.hits++;
  if (oracle.mustBeNewest(asked, uri)) counts.newest++;
  findings.add(...oracle.read(asked, uri, answer));
}

/** Reads all there is, on every gateway. */
export async function sweep(world: World, random: Random): Promise<void> {
  for (const upstream of ['alpha', 'beta', 'gamma'] as const) {
    for (const resource of world.truth.of(upstream)) {
      for (const running of world.fleet.running) await readOf(world, running, random.pick(CALLERS), resource);
    }
  }
}

/** Walks a list to its end, each page on whatever gateway. */
export async function walkOne(world: World, random: Random): Promise<void> {
  const caller = random.pick(CALLERS);
  const route: Route = random.once(3) ? '/own' : '/mcp';
  const items: Item[] = [];
  const incomplete: string[] = [];
  let cursor: string | undefined;
  let first: Asked | undefined;
  let last: Asked | undefined;
  let failure: Answer | undefined;
  do {
    const params = cursor === undefined ? {} : { cursor };
    const { asked, answer, got } = await ask(world.gateway(random), route, caller, 'resources/list', params);
    first ??= asked;
    last = asked;
    if (got === undefined || answer.status !== 200 || answer.code !== undefined) {
      failure = answer;
      break;
    }
    const page: Page = pageOf(got);
    items.push(...page.items);
    incomplete.push(...page.incomplete);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  const walk: Walk = {
    ...{ ...first, endedAt: last.endedAt, items, incomplete },
    ...(failure !== undefined && { failure }),
  };
  world.counts.walks++;
  world.counts.exact += ROUTES[route].filter((upstream) => world.oracle.mustBeExact(walk, upstream)).length;
  world.findings.add(...world.oracle.walk(walk));
}

/** Calls the echo of some upstream. */
export async function callOne(world: World, random: Random): Promise<void> {
  const upstream = random.pick(UPSTREAMS);
  const caller = random.pick(CALLERS);
  const word = `word ${random.uint32()}`;
  const params = { name: `${upstream}-echo`, arguments: { word } };
  const { asked, answer } = await ask(world.gateway(random), routeOf(upstream), caller, 'tools/call', params);
  world.counts.calls++;
  world.findings.add(...world.oracle.call(asked, echoOf(upstream, caller, word), answer));
}

/** Changes some resource, now and then more than once in a moment, and tells. */
export function changeOne(world: World, random: Random, upstream = random.pick(UPSTREAMS)): void {
  const there = world.truth.of(upstream).filter((resource) => newest(resource).state === 'there');
  const resource = there[random.below(there.length)];
  if (resource === undefined) return;
  for (let times = random.once(5) ? 3 : 1; times > 0; times--) {
    world.truth.change(resource.uri, performance.now());
    world.upstreams[upstream].updated(resource);
    world.counts.changes++;
  }
}

/** Takes a resource away, or brings one back, and tells. */
export function relistOne(world: World, random: Random): void {
  const upstream = random.pick(UPSTREAMS);
  const resource = random.pick(world.truth.of(upstream));
  const at = performance.now();
  if (newest(resource).state === 'there') world.truth.remove(resource.uri, at);
  else world.truth.add(resource, at);
  world.upstreams[upstream].updated(resource);
  world.upstreams[upstream].listChanged();
  world.counts.changes++;
}
