/**
 * Where does a request go? Design, section 4, as one pure decision: first match wins. *Never* asks anybody.
 */
import type { RouteConfig, UpstreamConfig } from '../config/types.ts';
import { type McpRequest, paramHeader, unknownMethod } from '../protocol/classify.ts';
import { HEADER_MISMATCH, INVALID_PARAMS, type Refusal, refusal } from '../protocol/errors.ts';
import type { Head } from '../protocol/headers.ts';
import { isRoundTrip, nestedStringParam } from '../protocol/params.ts';
import { type Owned, Ownership } from './ownership.ts';
import { namePattern, type Pattern, uriPattern } from './pattern.ts';
import type { LookupBudget } from './template-index.ts';

/** How far a request may be resolved: `first`, or after what was unknown has been listed. */
export type Stage = 'first' | 'listed';

export type Plan =
  /** The one upstream at this rank. */
  | { readonly kind: 'single'; readonly rank: number }
  /** Nothing known yet: list these kinds, then resolve again. */
  | { readonly kind: 'learn'; readonly owned: readonly Owned[] }
  /** Ask these upstreams in order; `complete` counts as an answer. */
  | { readonly kind: 'ask'; readonly ranks: readonly number[] }
  | { readonly kind: 'refuse'; readonly refusal: Refusal };

const ONLY: Plan = { kind: 'single', rank: 0 };

interface Rule {
  readonly method: string | undefined;
  readonly name: Pattern | undefined;
  readonly headers: readonly (readonly [string, Pattern])[];
  readonly rank: number;
}

/** What is claimed, and looked for by rules: templates count as resources. */
type Claimed = 'resources' | 'tools' | 'prompts';
type Claims = Readonly<Record<Claimed, readonly Pattern[]>>;

/** The upstream whose list names an item, and the steps left for the look-ups of its page. */
export interface Lister {
  readonly rank: number;
  readonly budget: LookupBudget;
}

/** What routes on one path: rules, claims and learnt ownership. */
export class Routing {
  readonly ownership: Ownership;
  readonly #rules: readonly Rule[];
  readonly #claims: readonly Claims[];
  readonly #upstreams: readonly UpstreamConfig[];
  readonly #open: Readonly<Record<keyof Claims, readonly number[]>>;

  constructor(route: RouteConfig, upstreams: readonly UpstreamConfig[]) {
    this.#upstreams = upstreams;
    this.ownership = new Ownership(upstreams.length);
    this.#claims = upstreams.map((upstream) => ({
      resources: upstream.claims.resources.map(uriPattern),
      tools: upstream.claims.tools.map(namePattern),
      prompts: upstream.claims.prompts.map(namePattern),
    }));
    const open = (kind: keyof Claims): number[] =>
      this.#claims.flatMap((claims, rank) => (claims[kind].length === 0 ? [rank] : []));
    this.#open = { resources: open('resources'), tools: open('tools'), prompts: open('prompts') };
    this.#rules = route.rules.map((rule) => ({
      method: rule.method,
      name: rule.name === undefined ? undefined : rulePattern(rule.method, rule.name),
      headers: Object.entries(rule.headers).map(([name, value]) => [name, namePattern(value)] as const),
      rank: route.upstreams.indexOf(rule.upstream),
    }));
  }

  /** Resolves a request for one owner; lists, discover and listen are never brought here. */
  resolve(request: McpRequest, context: string, stage: Stage): Plan {
    const { route } = request.row;
    if (route === 'reference') return this.#resolveReference(request, context, stage);
    const ruled = this.#byRule(request, request.name);
    if (ruled !== undefined) return ruled;
    const name = request.name ?? '';
    if (route === 'uri') return this.#resolveUri(request, name, context, stage);
    if (route === 'tool') return this.#resolveName('tools', name, context, stage);
    if (route === 'prompt') return this.#resolveName('prompts', name, context, stage);
    return this.#upstreams.length === 1 ? ONLY : { kind: 'refuse', refusal: unknownMethod(request.method) };
  }

  /** Where a resource is listened for: where it would be read. Undefined: nobody is known to have it. */
  listenedAt(uri: string, head: Head, context: string, stage: Stage): number | 'learn' | undefined {
    const asked = { method: 'resources/read', head };
    return rankOf(this.#byRule(asked, uri) ?? this.#resolveOwner(uri, context, stage));
  }

  /** Where a task is listened for: where `tasks/get` goes. */
  taskListenedAt(taskId: string, head: Head): number | undefined {
    const ruled = this.#byRule({ method: 'tasks/get', head }, taskId);
    if (ruled === undefined) return this.#upstreams.length === 1 ? 0 : undefined;
    return ruled.kind === 'single' ? ruled.rank : undefined;
  }

  /**
   * The rank whose item this is, as far as it is known here; undefined: nobody else is known to have it.
   *
   * A list has no call's headers. So of a name that rules route by headers, all upstreams that a call could reach may
   * list it: those of the rules that look at headers, and the one it goes to when none of them fits. The first of
   * these in the route's order that names it has it, so that what can be called is listed, and listed once.
   * @param lister given for an item of that upstream's list: what comes behind it is then not looked at.
   */
  ownerOfListed(kind: Owned, id: string, context: string, lister?: Lister): number | undefined {
    const { byHeaders, always } = this.#ruledListed(kind, id);
    const fixed = always ?? this.#byClaim(kind, id);
    if (lister === undefined) return fixed ?? this.ownership.listedBy(kind, id, context);
    const { rank, budget } = lister;
    if (fixed === undefined) return this.ownership.listedBy(kind, id, context, { below: rank, budget });
    if (fixed !== rank && !byHeaders.includes(rank)) return fixed;
    const reached = [fixed, ...byHeaders].filter((other) => other < rank).sort((a, b) => a - b);
    return reached.find((other) => this.ownership.names(kind, id, other, context)) ?? rank;
  }

  /** Whether an upstream may have an item of this kind at all: claims of a kind exclude what is outside them. */
  admits(kind: Owned, id: string, rank: number): boolean {
    const patterns = this.#claims[rank]?.[claimKind(kind)] ?? [];
    return patterns.length === 0 || patterns.some((pattern) => admitsId(pattern, id, kind));
  }

  /** The upstreams whose lists say what they have: those without claims of the kind. */
  withoutClaims(kind: Owned): readonly number[] {
    return this.#open[claimKind(kind)];
  }

  #resolveUri(request: McpRequest, uri: string, context: string, stage: Stage): Plan {
    const plan = this.#resolveOwner(uri, context, stage);
    if (plan !== undefined) return plan;
    const askable = this.withoutClaims('resources').filter(
      (at) => !takesAlong(this.#upstreams[at] as UpstreamConfig, request),
    );
    const roundTrip = request.params !== undefined && isRoundTrip(request.params);
    if (askable.length > 0 && !roundTrip) return { kind: 'ask', ranks: askable };
    return { kind: 'refuse', refusal: notFound(uri) };
  }

  #resolveOwner(uri: string, context: string, stage: Stage): Plan | undefined {
    if (this.#isAlone('resources')) return ONLY;
    const owner = this.#byClaim('resources', uri) ?? this.ownership.owner('resources', uri, context);
    return this.#owned(owner, ['resources', 'templates'], stage);
  }

  #resolveName(kind: 'tools' | 'prompts', name: string, context: string, stage: Stage): Plan {
    if (this.#isAlone(kind)) return ONLY;
    const owner = this.#byClaim(kind, name) ?? this.ownership.owner(kind, name, context);
    const plan = this.#owned(owner, [kind], stage);
    if (plan !== undefined) return plan;
    const what = kind === 'tools' ? 'tool' : 'prompt';
    return { kind: 'refuse', refusal: refusal(INVALID_PARAMS, `Unknown ${what}`, { data: { name } }) };
  }

  #resolveReference(request: McpRequest, context: string, stage: Stage): Plan {
    const reference = referenceOf(request);
    if (reference.kind === 'invalid') return { kind: 'refuse', refusal: reference.refusal };
    const { name } = reference;
    const ruled = this.#byRule(request, name);
    if (ruled !== undefined) return ruled;
    if (reference.kind === 'prompt') return this.#resolveName('prompts', name, context, stage);
    // The text of a template first, then as a URI: claimed, then learnt.
    const owner =
      this.#byClaim('templates', name) ??
      this.ownership.owner('templates', name, context) ??
      this.ownership.owner('resources', name, context);
    return (
      this.#owned(owner, ['templates', 'resources'], stage) ?? { kind: 'refuse', refusal: notFound(name) }
    );
  }

  /** There is but one upstream, and whatever is of this kind is its: nobody need look where. */
  #isAlone(kind: Claimed): boolean {
    return this.#upstreams.length === 1 && this.#open[kind].length === 1;
  }

  /**
   * Steps 2 to 6, alike for everything that has one owner: the one that was found, or the only upstream there is, or
   * list first. Undefined: nobody's.
   */
  #owned(owner: number | undefined, learns: readonly [Owned, ...Owned[]], stage: Stage): Plan | undefined {
    if (owner !== undefined) return { kind: 'single', rank: owner };
    const open = this.withoutClaims(learns[0]);
    if (this.#isAlone(claimKind(learns[0]))) return ONLY;
    return stage === 'first' && open.length > 0 ? { kind: 'learn', owned: learns } : undefined;
  }

  #byRule(request: Pick<McpRequest, 'method' | 'head'>, name: string | undefined): Plan | undefined {
    for (const rule of this.#rules) {
      if (rule.method !== undefined && rule.method !== request.method) continue;
      if (rule.name !== undefined && (name === undefined || !rule.name.matches(name))) continue;
      const fit = headersFit(rule, request);
      if (fit.kind === 'malformed') return { kind: 'refuse', refusal: malformedParam(fit.name) };
      if (fit.kind === 'fits') return { kind: 'single', rank: rule.rank };
    }
    return undefined;
  }

  /** Where rules route it: where the first that looks at no header does, and those that come before it and do. */
  #ruledListed(kind: Owned, id: string): { byHeaders: readonly number[]; always: number | undefined } {
    const method = METHOD_OF[claimKind(kind)];
    const byHeaders: number[] = [];
    for (const rule of this.#rules) {
      if (rule.method !== undefined && rule.method !== method) continue;
      if (rule.name !== undefined && !rule.name.matches(id)) continue;
      if (rule.headers.length === 0) return { byHeaders, always: rule.rank };
      byHeaders.push(rule.rank);
    }
    return { byHeaders, always: undefined };
  }

  #byClaim(kind: Owned, id: string): number | undefined {
    const rank = this.#claims.findIndex((claims) =>
      claims[claimKind(kind)].some((pattern) => admitsId(pattern, id, kind)),
    );
    return rank < 0 ? undefined : rank;
  }
}

function rankOf(plan: Plan | undefined): number | 'learn' | undefined {
  if (plan?.kind === 'learn') return 'learn';
  return plan?.kind === 'single' ? plan.rank : undefined;
}

type Reference =
  | { readonly kind: 'resource' | 'prompt'; readonly name: string }
  | { readonly kind: 'invalid'; readonly refusal: Refusal };

/** What a completion is for. */
function referenceOf({ params }: McpRequest): Reference {
  const type = params && nestedStringParam(params, 'ref', 'type');
  if (params === undefined || (type !== 'ref/resource' && type !== 'ref/prompt'))
    return invalidReference('"ref" must be a ref/resource or a ref/prompt');
  const member = type === 'ref/prompt' ? 'name' : 'uri';
  const name = nestedStringParam(params, 'ref', member);
  if (name === undefined) return invalidReference(`"ref" lacks "${member}"`);
  return { kind: type === 'ref/prompt' ? 'prompt' : 'resource', name };
}

function invalidReference(message: string): Reference {
  return { kind: 'invalid', refusal: refusal(INVALID_PARAMS, message) };
}

/**
 * Whether a credential of the caller would reach this upstream: it is not carried from door to door. Any header that
 * is forwarded counts, as it counts for who the caller is: which of them are secrets nobody says.
 */
function takesAlong({ auth, forwardHeaders }: UpstreamConfig, { head }: McpRequest): boolean {
  if (auth.type === 'forward' && head.headers.has('authorization')) return true;
  return forwardHeaders.some((name) => head.headers.has(name));
}

/** Templates are claimed as resources. */
function claimKind(kind: Owned): Claimed {
  return kind === 'templates' ? 'resources' : kind;
}

const METHOD_OF = { resources: 'resources/read', tools: 'tools/call', prompts: 'prompts/get' } as const;

function rulePattern(method: string | undefined, name: string): Pattern {
  return method === 'tools/call' || method === 'prompts/get' ? namePattern(name) : uriPattern(name);
}

/** A template is admitted by a claim that is the same text, or whose glob covers its text. */
function admitsId(pattern: Pattern, id: string, kind: Owned): boolean {
  return pattern.matches(id) || (kind === 'templates' && pattern.text === id);
}

function headersFit(
  rule: Rule,
  request: Pick<McpRequest, 'head'>,
): { readonly kind: 'fits' | 'differs' } | { readonly kind: 'malformed'; readonly name: string } {
  for (const [name, pattern] of rule.headers) {
    const value = paramHeader(request.head, name);
    if (value.kind === 'malformed') return { kind: 'malformed', name };
    if (value.kind !== 'value' || !pattern.matches(value.text)) return { kind: 'differs' };
  }
  return { kind: 'fits' };
}

function malformedParam(name: string): Refusal {
  const message = `The header ${name} is neither visible ASCII nor =?base64?…?= of UTF-8 bytes`;
  return refusal(HEADER_MISMATCH, message, { reason: 'header_mismatch' });
}

/** -32602 for a resource that nobody has. *Spec:* server/resources, "Error handling". */
export function notFound(uri: string): Refusal {
  return refusal(INVALID_PARAMS, 'Resource not found', { data: { uri } });
}
