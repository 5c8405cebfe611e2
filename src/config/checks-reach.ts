/** What nothing ever comes to: claims that an earlier upstream takes, and rules behind one that takes as much. */
import { type Cover, coverOf, covers, Effort, QUICK_STEPS, type Reading } from './covers.ts';
import type { Path } from './problems.ts';
import type { Report } from './report.ts';
import type { Authored } from './schema.ts';
import type { AuthoredRoute, AuthoredRule } from './schema-route.ts';

/** A file without mistakes: what is left out of a faulty one may be the condition that tells two rules apart. */
type Whole = Pick<Authored, 'routes' | 'upstreams'>;

const KINDS = { resources: 'uri', tools: 'name', prompts: 'name' } as const;
type Kind = keyof typeof KINDS;

/** A claim that never decides anything on one route, and what comes before it. */
interface Shadowed {
  readonly path: Path;
  readonly by: string;
  readonly route: string;
}

/** Characters compared with characters: below a second of work, and more than files with hundreds of claims need. */
const EFFORT_STEPS = 5_000_000;

/** Looks for claims that are of no use on any route, and for rules that never match. */
export function checkReach(draft: Whole, report: Report): void {
  const effort = new Effort(EFFORT_STEPS);
  for (const [index, { rules }] of draft.routes.entries())
    checkRules(['routes', index, 'rules'], rules, report, effort);
  checkClaims(draft, report, effort);
}

function checkClaims(draft: Whole, report: Report, effort: Effort): void {
  const found = draft.routes.map((route) => shadowedOn(route, draft, effort));
  for (const name of Object.keys(draft.upstreams)) {
    const [first, ...others] = found.filter((_, index) => draft.routes[index]?.upstreams.includes(name));
    for (const [key, { path, by, route }] of first?.get(name) ?? []) {
      if (others.every((other) => other.get(name)?.has(key)))
        report.warn(path, `remove it: on route ${route} ${by} comes before and claims all of this`);
    }
  }
}

/** Of each upstream of a route its claims that an earlier one takes whole. */
function shadowedOn(
  route: AuthoredRoute,
  { upstreams }: Whole,
  effort: Effort,
): ReadonlyMap<string, ReadonlyMap<string, Shadowed>> {
  const found = new Map<string, Map<string, Shadowed>>();
  for (const [kind, reading] of Object.entries(KINDS) as [Kind, Reading][]) {
    const taken = new Taken();
    // A rule can send there what others claim, and then the claim lets it list that.
    const ruled = new Set(
      route.rules.filter(({ match }) => isOf(kind, match.method)).map((rule) => rule.upstream),
    );
    for (const name of new Set(route.upstreams)) {
      const claims = upstreams[name]?.[kind] ?? [];
      const shadowed = found.get(name) ?? new Map<string, Shadowed>();
      found.set(name, shadowed);
      for (const [index, text] of ruled.has(name) ? [] : claims.entries()) {
        const by = taken.by(text, reading, effort);
        const path = ['upstreams', name, kind, index];
        if (by !== undefined) shadowed.set(`${kind} ${index}`, { path, by, route: route.path });
      }
      for (const text of claims) taken.add(text, name, reading);
    }
  }
  return found;
}

/** Whether a rule for this method, or for any, may be about such claims. */
function isOf(kind: Kind, method: string | undefined): boolean {
  const [family = ''] = method?.split('/') ?? [];
  return family === kind || !Object.hasOwn(KINDS, family);
}

/** What the upstreams looked at so far claim. */
class Taken {
  readonly #texts = new Map<string, string>();
  readonly #open: (readonly [Cover, string])[] = [];

  add(text: string, name: string, reading: Reading): void {
    if (this.#texts.has(text)) return;
    this.#texts.set(text, name);
    const cover = coverOf(text, reading);
    if (cover.pattern !== undefined) this.#open.push([cover, name]);
  }

  /** The upstream that takes it, in words. */
  by(text: string, reading: Reading, effort: Effort): string | undefined {
    if (effort.isSpent) return this.#texts.get(text);
    return this.#texts.get(text) ?? this.#open.find(([cover]) => covers(cover, text, reading, effort))?.[1];
  }
}

/** A rule made ready to stand before others. */
interface Before {
  readonly method: string | undefined;
  readonly name: Cover | undefined;
  readonly headers: readonly (readonly [name: string, Cover])[];
}

function checkRules(path: Path, rules: readonly AuthoredRule[], report: Report, effort: Effort): void {
  const before: Before[] = [];
  for (const [index, rule] of rules.entries()) {
    if (effort.isSpent) return;
    const by = before.findIndex((earlier) => takesAll(earlier, rule, effort));
    if (by >= 0)
      report.warn([...path, index], `this rule never matches: rules[${by}] takes all of it before`);
    before.push(beforeOf(rule));
  }
}

function beforeOf({ match: { method, name, header = {} } }: AuthoredRule): Before {
  return {
    method,
    name: name === undefined ? undefined : coverOf(name, readingOf(method)),
    headers: Object.entries(header).map(([key, glob]) => [key.toLowerCase(), coverOf(glob, 'name')]),
  };
}

/** Whether each condition of `earlier` holds wherever those of `later` do. */
function takesAll(earlier: Before, { match: later }: AuthoredRule, effort: Effort): boolean {
  if (!effort.spend(QUICK_STEPS)) return false;
  if (earlier.method !== undefined && earlier.method !== later.method) return false;
  if (earlier.name !== undefined) {
    if (later.name === undefined) return false;
    if (!covers(earlier.name, later.name, readingOf(later.method), effort)) return false;
  }
  return earlier.headers.every(([name, cover]) => {
    const [, value] = Object.entries(later.header ?? {}).find(([key]) => key.toLowerCase() === name) ?? [];
    return value !== undefined && covers(cover, value, 'name', effort);
  });
}

/** As rules read their names: `routing/resolve.ts`. */
function readingOf(method: string | undefined): Reading {
  return method === 'tools/call' || method === 'prompts/get' ? 'name' : 'uri';
}
