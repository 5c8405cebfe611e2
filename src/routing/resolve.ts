/**
 * Where does a request go? Design, section 4, as one pure decision: first match wins. *Never* asks anybody.
 */
import type { RouteConfig, UpstreamConfig } from '../config/types.ts';
import { type McpRequest, paramHeader, unknownMethod } from '../protocol/classify.ts';
import { HEADER_MISMATCH, INVALID_PARAMS, type Refusal, refusal } from '../protocol/errors.ts';
import { isRoundTrip, nestedStringParam } from '../protocol/params.ts';
import { type Owned, Ownership } from './ownership.ts';
import { namePattern, type Pattern, uriPattern } from './pattern.ts';

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

interface Rule {
  readonly method: string | undefined;
  readonly name: Pattern | undefined;
  readonly headers: readonly (readonly [string, Pattern])[];
  readonly rank: number;
}

type Claims = Readonly<Record<'resources' | 'tools' | 'prompts', readonly Pattern[]>>;

/** What routes on one path: rules, claims and learnt ownership. */
export class Routing {
  readonly ownership = new Ownership();
  readonly #rules: readonly Rule[];
  readonly #claims: readonly Claims[];
  readonly #upstreams: readonly UpstreamConfig[];

  constructor(route: RouteConfig, upstreams: readonly UpstreamConfig[]) {
    this.#upstreams = upstreams;
    this.#claims = upstreams.map((upstream) => ({
      resources: upstream.claims.resources.map(uriPattern),
      tools: upstream.claims.tools.map(namePattern),
      prompts: upstream.claims.prompts.map(namePattern),
    }));
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
    return this.#upstreams.length === 1
      ? { kind: 'single', rank: 0 }
      : { kind: 'refuse', refusal: unknownMethod(request.method) };
  }

  /**
   * The rank that owns a listed item as far as it is known here; undefined: nobody else is known to.
   * Rules that look at headers are left out: a list has no call's headers.
   */
  ownerOfListed(kind: Owned, id: string, context: string): number | undefined {
    const claimed = claimKind(kind);
    return (
      this.#ruledListed(claimed, id) ?? this.#byClaim(claimed, id) ?? this.ownership.owner(kind, id, context)
    );
  }

  /** Whether an upstream may have an item of this kind at all: claims of a kind exclude what is outside them. */
  admits(kind: Owned, id: string, rank: number): boolean {
    const patterns = this.#claims[rank]?.[claimKind(kind)] ?? [];
    return patterns.length === 0 || patterns.some((pattern) => admitsId(pattern, id, kind));
  }

  /** The upstreams whose lists say what they have: those without claims of the kind. */
  withoutClaims(kind: Owned): number[] {
    const claimed = claimKind(kind);
    return this.#claims.flatMap((claims, rank) => (claims[claimed].length === 0 ? [rank] : []));
  }

  #resolveUri(request: McpRequest, uri: string, context: string, stage: Stage): Plan {
    const rank = this.#byClaim('resources', uri) ?? this.ownership.owner('resources', uri, context);
    if (rank !== undefined) return { kind: 'single', rank };
    const open = this.withoutClaims('resources');
    if (this.#upstreams.length === 1 && open.length === 1) return { kind: 'single', rank: 0 };
    if (stage === 'first' && open.length > 0) return { kind: 'learn', owned: ['resources', 'templates'] };
    const askable = open.filter((at) => !takesAlong(this.#upstreams[at] as UpstreamConfig, request));
    const roundTrip = request.params !== undefined && isRoundTrip(request.params);
    if (askable.length > 0 && !roundTrip) return { kind: 'ask', ranks: askable };
    return { kind: 'refuse', refusal: notFound(uri) };
  }

  #resolveName(kind: 'tools' | 'prompts', name: string, context: string, stage: Stage): Plan {
    const rank = this.#byClaim(kind, name) ?? this.ownership.owner(kind, name, context);
    if (rank !== undefined) return { kind: 'single', rank };
    const open = this.withoutClaims(kind);
    if (this.#upstreams.length === 1 && open.length === 1) return { kind: 'single', rank: 0 };
    if (stage === 'first' && open.length > 0) return { kind: 'learn', owned: [kind] };
    const what = kind === 'tools' ? 'tool' : 'prompt';
    return { kind: 'refuse', refusal: refusal(INVALID_PARAMS, `Unknown ${what}`, { data: { name } }) };
  }

  #resolveReference(request: McpRequest, context: string, stage: Stage): Plan {
    const { params } = request;
    const type = params && nestedStringParam(params, 'ref', 'type');
    if (params === undefined || (type !== 'ref/resource' && type !== 'ref/prompt')) {
      return {
        kind: 'refuse',
        refusal: refusal(INVALID_PARAMS, '"ref" must be a ref/resource or a ref/prompt'),
      };
    }
    const name = nestedStringParam(params, 'ref', type === 'ref/prompt' ? 'name' : 'uri');
    if (name === undefined) {
      return {
        kind: 'refuse',
        refusal: refusal(INVALID_PARAMS, `"ref" lacks ${type === 'ref/prompt' ? '"name"' : '"uri"'}`),
      };
    }
    const ruled = this.#byRule(request, name);
    if (ruled !== undefined) return ruled;
    if (type === 'ref/prompt') return this.#resolveName('prompts', name, context, stage);
    const rank =
      this.ownership.owner('templates', name, context) ??
      this.#byClaim('resources', name) ??
      this.ownership.owner('resources', name, context);
    if (rank !== undefined) return { kind: 'single', rank };
    if (this.#upstreams.length === 1) return { kind: 'single', rank: 0 };
    if (stage === 'first') return { kind: 'learn', owned: ['templates', 'resources'] };
    return { kind: 'refuse', refusal: notFound(name) };
  }

  #byRule(request: McpRequest, name: string | undefined): Plan | undefined {
    for (const rule of this.#rules) {
      if (rule.method !== undefined && rule.method !== request.method) continue;
      if (rule.name !== undefined && (name === undefined || !rule.name.matches(name))) continue;
      const fit = headersFit(rule, request);
      if (fit.kind === 'malformed') return { kind: 'refuse', refusal: malformedParam(fit.name) };
      if (fit.kind === 'fits') return { kind: 'single', rank: rule.rank };
    }
    return undefined;
  }

  #ruledListed(kind: 'resources' | 'tools' | 'prompts', id: string): number | undefined {
    const method = METHOD_OF[kind];
    return this.#rules.find(
      (rule) =>
        rule.headers.length === 0 &&
        (rule.method === undefined || rule.method === method) &&
        (rule.name === undefined || rule.name.matches(id)),
    )?.rank;
  }

  #byClaim(kind: 'resources' | 'tools' | 'prompts', id: string): number | undefined {
    const rank = this.#claims.findIndex((claims) => claims[kind].some((pattern) => pattern.matches(id)));
    return rank < 0 ? undefined : rank;
  }
}

/** Headers that say who somebody is, when they are forwarded. */
const CREDENTIALS = ['authorization', 'cookie', 'proxy-authorization', 'x-api-key'] as const;

/** Whether a credential of the caller would reach this upstream: it is not carried from door to door. */
function takesAlong(upstream: UpstreamConfig, request: McpRequest): boolean {
  const { headers } = request.head;
  if (upstream.auth.type === 'forward' && headers.has('authorization')) return true;
  return CREDENTIALS.some((name) => upstream.forwardHeaders.includes(name) && headers.has(name));
}

/** Templates are claimed as resources. */
function claimKind(kind: Owned): 'resources' | 'tools' | 'prompts' {
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
  request: McpRequest,
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
