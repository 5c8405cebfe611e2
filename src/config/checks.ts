/** What no single value shows: references, overlaps, and combinations that would fail open. */
import { isRemoved, methodRow } from '../protocol/methods.ts';
import { collide, formatAddress, isLoopback } from './address.ts';
import { checkWay } from './checks-process.ts';
import { checkRedis } from './checks-redis.ts';
import type { Draft, DraftRoute } from './draft.ts';
import { upstreamNameMend, uriPatternMend } from './mends.ts';
import { nearest } from './nearest.ts';
import type { Path } from './problems.ts';
import type { Report } from './report.ts';
import { ADMIN_TOKEN } from './schema-listen.ts';
import type { AuthoredRule } from './schema-route.ts';
import type { AuthoredUpstream } from './schema-upstream.ts';
import type { Address } from './types.ts';

/** Looks at everything between the pieces; each check stands alone. */
export function checkDraft(draft: Draft, report: Report): void {
  checkListeners(draft, report);
  checkAdmin(draft, report);
  for (const [name, upstream] of draft.upstreams) {
    const flaw = upstreamNameMend(name);
    if (flaw !== undefined) report.errorAtKey(['upstreams', name], flaw);
    if (upstream !== undefined) checkUpstream(name, upstream, report);
  }
  checkRoutePaths(draft, report);
  for (const [index, route] of draft.routes.entries())
    if (route !== undefined) checkRoute(index, route, draft, report);
  checkUnused(draft, report);
  checkMemory(draft, report);
  checkRedis(draft, report);
  checkExposure(draft, report);
}

/** The listener's address, whichever form was written. */
export function listenAddress(draft: Pick<Draft, 'listen'>): Address | undefined {
  if (draft.listen === undefined) return undefined;
  return 'host' in draft.listen ? draft.listen : draft.listen.address;
}

/** The admin port's address, whichever form was written. */
export function adminAddress({ admin }: Pick<Draft, 'admin'>): Address | false | undefined {
  return typeof admin === 'object' && 'address' in admin ? admin.address : admin;
}

function checkListeners(draft: Draft, report: Report): void {
  const listeners: readonly (readonly [string, Address | false | undefined])[] = [
    ['listen', listenAddress(draft)],
    ['status', draft.status],
    ['admin', adminAddress(draft)],
  ];
  for (const [index, [later, address]] of listeners.entries()) {
    for (const [earlier, other] of listeners.slice(0, index)) {
      if (!address || !other || !collide(address, other)) continue;
      const [path, taken] =
        report.has([later]) || !report.has([earlier]) ? [later, earlier] : [earlier, later];
      report.error([path], `choose another port: ${taken} has ${address.port} already`);
    }
  }
}

function checkAdmin(draft: Draft, report: Report): void {
  const address = adminAddress(draft);
  if (!address || isLoopback(address.host)) return;
  if (report.has(['admin', 'token'])) {
    const { admin } = draft;
    // One that is no good has its own problem.
    if (typeof admin === 'object' && 'token' in admin && admin.token !== undefined)
      report.warn(
        ['admin'],
        'reachable from other machines: whoever has the token drops what is cached; listen on 127.0.0.1 unless that is meant',
      );
    return;
  }
  report.error(
    ['admin'],
    `write ${ADMIN_TOKEN}, or an address such as 127.0.0.1:9901: beyond loopback it needs a token`,
  );
}

function checkUpstream(name: string, upstream: AuthoredUpstream, report: Report): void {
  const { auth, forwardHeaders, cache } = upstream;
  checkWay(name, upstream, report);
  for (const [index, header] of forwardHeaders.entries()) {
    const path = ['upstreams', name, 'forwardHeaders', index];
    if (auth.type === 'header' && auth.name.toLowerCase() === header.toLowerCase()) {
      report.error(path, "remove it: a caller's header would take the place of the one under auth");
    }
    if (
      forwardHeaders
        .slice(0, index)
        .some((earlier) => earlier !== header && earlier.toLowerCase() === header.toLowerCase())
    ) {
      report.error(path, 'remove it: the same header stands above');
    }
  }
  if (cache.ttl.default > cache.ttl.max) {
    report.error(['upstreams', name, 'cache', 'ttl', 'default'], 'write no more than ttl.max');
  }
  checkTimesToLive(name, upstream, report);
  if (cache.scope === 'public' && auth.type === 'forward') {
    report.warn(
      ['upstreams', name, 'cache', 'scope'],
      "public shows every caller what was answered to another's credential; write respect unless that is meant",
    );
  }
}

/** Whatever changes without a notification is served as it was for that long. */
const LONG_MS = 24 * 3_600_000;

function checkTimesToLive(name: string, { cache }: AuthoredUpstream, report: Report): void {
  const times: readonly (readonly [Path, number])[] = [
    [['ttl', 'default'], cache.ttl.default],
    [['ttl', 'max'], cache.ttl.max],
    ...cache.rules.map(({ ttl }, index) => [['rules', index, 'ttl'], ttl] as const),
  ];
  for (const [path, ms] of times) {
    if (ms <= LONG_MS) continue;
    report.warn(
      ['upstreams', name, 'cache', ...path],
      'longer than a day: what changes without a notification is served as it was until then; write 24h or less unless that is meant',
    );
  }
}

function checkRoutePaths(draft: Draft, report: Report): void {
  const known = new Map<string, number>();
  for (const [index, route] of draft.routes.entries()) {
    if (route === undefined) continue;
    const earlier = known.get(route.path);
    if (earlier === undefined) known.set(route.path, index);
    else report.error(['routes', index, 'path'], `write another path: routes[${earlier}] has this one`);
  }
}

function checkRoute(index: number, route: DraftRoute, draft: Draft, report: Report): void {
  for (const [place, name] of route.upstreams.entries()) {
    if (!draft.upstreams.has(name))
      unknownUpstream(['routes', index, 'upstreams', place], name, draft, report);
  }
  checkForward(index, route, draft, report);
  for (const [number, rule] of route.rules.entries())
    if (rule !== undefined) checkRule(['routes', index, 'rules', number], rule, route, draft, report);
}

/** A caller's token must reach the one audience it was made for, and no route may mix it with a credential of ours. */
function checkForward(index: number, route: DraftRoute, draft: Draft, report: Report): void {
  const auths = route.upstreams.map((name) => draft.upstreams.get(name)?.auth);
  const forwarded = auths.some((auth) => auth?.type === 'forward');
  for (const [place, auth] of auths.entries()) {
    const path = ['routes', index, 'upstreams', place];
    if (forwarded && (auth?.type === 'bearer' || auth?.type === 'header')) {
      report.error(
        path,
        `move it to a route of its own: it has auth.type ${auth.type}, and another upstream here has forward; whoever may use the one must not get the other's credential`,
      );
    }
    if (auth?.type === 'forward' && !auth.shared && route.upstreams.length > 1) {
      report.error(
        path,
        'give it a route of its own, or write auth: { type: forward, shared: true } if one audience covers every upstream of this route',
      );
    }
  }
}

function checkRule(path: Path, rule: AuthoredRule, route: DraftRoute, draft: Draft, report: Report): void {
  const { method, name, header = {} } = rule.match;
  if (!draft.upstreams.has(rule.upstream))
    unknownUpstream([...path, 'upstream'], rule.upstream, draft, report);
  else if (!route.upstreams.includes(rule.upstream)) {
    report.error(
      [...path, 'upstream'],
      `add ${report.said([...path, 'upstream'])} to the upstreams of this route, or write one of them`,
    );
  }
  const ruled = method === undefined ? undefined : unruledMethod(method);
  if (ruled !== undefined) report.warn([...path, 'match', 'method'], ruled);
  const isUri = method?.startsWith('resources/') ?? name?.includes('://');
  const flaw = name !== undefined && isUri ? uriPatternMend(name) : undefined;
  if (flaw !== undefined) report.error([...path, 'match', 'name'], flaw);
  const names = new Set<string>();
  for (const key of Object.keys(header)) {
    if (names.has(key.toLowerCase()))
      report.error([...path, 'match', 'header', key], 'remove it: the same header stands above');
    names.add(key.toLowerCase());
  }
}

function unruledMethod(method: string): string | undefined {
  if (isRemoved(method)) return 'this rule never matches: the method is not part of the protocol any more';
  switch (methodRow(method).route) {
    case 'merge':
      return 'this rule never matches: lists are merged over every upstream';
    case 'discover':
    case 'listen':
      return 'this rule never matches: the gateway answers this method itself';
    default:
      return undefined;
  }
}

function unknownUpstream(path: Path, name: string, draft: Draft, report: Report): void {
  // Without any upstream that is the problem, and it has been told.
  if (draft.upstreams.size === 0) return;
  // A name that is none has its own problem, and may hold anything.
  const known = [...draft.upstreams.keys()].filter((other) => upstreamNameMend(other) === undefined);
  const meant = nearest(name, known);
  const hint = meant === undefined ? `known: ${known.join(', ')}` : `did you mean "${meant}"?`;
  report.error(path, `unknown upstream ${report.said(path)}; ${hint}`);
}

function checkUnused(draft: Draft, report: Report): void {
  const used = new Set(draft.routes.flatMap((route) => route?.upstreams ?? []));
  // A route that cannot be read, or a name with a slip in it, may be what uses it.
  const isUnsure = draft.routes.includes(undefined) || [...used].some((name) => !draft.upstreams.has(name));
  if (isUnsure || draft.routes.length === 0) return;
  for (const name of draft.upstreams.keys()) {
    if (!used.has(name)) report.warn(['upstreams', name], 'no route uses this upstream');
  }
}

function checkMemory(draft: Draft, report: Report): void {
  const path = ['cache', 'memory', 'maxEntry'];
  if (draft.memory === undefined || !report.has(path) || draft.memory.maxEntry <= draft.memory.size) return;
  report.error(path, 'write no more than cache.memory.size');
}

/** Whoever reaches a listener uses what stands behind it: nothing here asks callers who they are. */
function checkExposure(draft: Draft, report: Report): void {
  const address = listenAddress(draft);
  if (address === undefined || isLoopback(address.host)) return;
  const used = new Set(draft.routes.flatMap((route) => route?.upstreams ?? []));
  let open = false;
  for (const [name, upstream] of draft.upstreams) {
    if (upstream === undefined || !used.has(name)) continue;
    open ||= upstream.auth.type !== 'forward';
    if (upstream.auth.type === 'bearer' || upstream.auth.type === 'header') {
      report.warn(
        ['upstreams', name, 'auth'],
        'everybody who reaches the listener acts with this credential; put authorization in front of it',
      );
    }
  }
  if (open) {
    const isExpanded = report.isExpanded(['listen']) || report.isExpanded(['listen', 'address']);
    report.warn(
      ['listen'],
      `${isExpanded ? 'the address' : formatAddress(address)} is reachable from other machines and asks nobody for a credential; put authorization in front of it, or listen on 127.0.0.1`,
    );
  }
}
