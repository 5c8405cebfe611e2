/**
 * What can be said of a file although parts of it are wrong: every piece that can be read, so that one run
 * reports the problems between pieces together with those inside them.
 */
import type { z } from 'zod';
import type { Document } from './document.ts';
import { type Finding, findings, valueAt } from './issues.ts';
import type { Path } from './problems.ts';
import { type Authored, configSchema, memorySchema, secretsSchema } from './schema.ts';
import {
  type AuthoredAdmin,
  type AuthoredListen,
  adminSchema,
  DEFAULT_ADDRESSES,
  listenSchema,
  statusSchema,
} from './schema-listen.ts';
import { type AuthoredRedis, redisSchema } from './schema-redis.ts';
import { type AuthoredRoute, type AuthoredRule, routeSchema, ruleSchema } from './schema-route.ts';
import { type AuthoredUpstream, upstreamSchema } from './schema-upstream.ts';
import type { Address } from './types.ts';

/** Undefined stands for a piece with problems of its own. */
export interface Draft {
  readonly listen: AuthoredListen | undefined;
  readonly status: Address | undefined;
  readonly admin: AuthoredAdmin | undefined;
  readonly upstreams: ReadonlyMap<string, AuthoredUpstream | undefined>;
  readonly routes: readonly (DraftRoute | undefined)[];
  readonly secrets: Authored['secrets'] | undefined;
  readonly memory: Authored['cache']['memory'] | undefined;
  /** Also undefined where there is none. */
  readonly redis: AuthoredRedis | undefined;
}

export interface DraftRoute extends Omit<AuthoredRoute, 'rules'> {
  readonly rules: readonly (AuthoredRule | undefined)[];
}

export type Parsed =
  | { readonly kind: 'whole'; readonly authored: Authored; readonly draft: Draft }
  | { readonly kind: 'pieces'; readonly draft: Draft; readonly findings: readonly Finding[] };

/** Reads plain data by the schema, the whole or what can be read of it. */
export function parseAuthored(document: Document): Parsed {
  let data = document.data;
  let result = configSchema.safeParse(data);
  if (!result.success) {
    const typed = withTypedExpansions(data, result.error.issues, document);
    if (typed !== undefined) {
      data = typed;
      result = configSchema.safeParse(data);
    }
  }
  if (result.success) return { kind: 'whole', authored: result.data, draft: draftOf(result.data) };
  return { kind: 'pieces', draft: salvage(data), findings: findings(result.error.issues, data) };
}

function draftOf(authored: Authored): Draft {
  return {
    listen: authored.listen,
    status: authored.status,
    admin: authored.admin,
    upstreams: new Map(Object.entries(authored.upstreams)),
    routes: authored.routes,
    secrets: authored.secrets,
    memory: authored.cache.memory,
    redis: authored.cache.redis,
  };
}

/** What stands in for a required text that is wrong, while the rest of its piece is looked at. */
const STAND_INS = { route: { path: '/' } } as const;

function salvage(data: unknown): Draft {
  const upstreams = valueAt(data, ['upstreams']);
  const routes = valueAt(data, ['routes']);
  return {
    listen: piece(listenSchema, valueAt(data, ['listen']) ?? DEFAULT_ADDRESSES.listen),
    status: piece(statusSchema, valueAt(data, ['status']) ?? DEFAULT_ADDRESSES.status),
    admin: piece(adminSchema, valueAt(data, ['admin']) ?? DEFAULT_ADDRESSES.admin),
    upstreams: new Map(
      Object.entries(isMapping(upstreams) ? upstreams : {}).map(([name, value]) => [
        name,
        piece(upstreamSchema, value),
      ]),
    ),
    routes: Array.isArray(routes) ? routes.map(salvageRoute) : [],
    secrets: piece(secretsSchema, valueAt(data, ['secrets'])),
    memory: piece(memorySchema, valueAt(data, ['cache', 'memory'])),
    redis: piece(redisSchema, valueAt(data, ['cache', 'redis'])),
  };
}

/** Rules one by one: a bad one must not hide what is wrong with its neighbours. */
function salvageRoute(value: unknown): DraftRoute | undefined {
  if (!isMapping(value)) return undefined;
  const { rules, ...rest } = value;
  const route = piece(routeSchema, rest, STAND_INS.route);
  if (route === undefined) return undefined;
  return { ...route, rules: Array.isArray(rules) ? rules.map((rule) => piece(ruleSchema, rule)) : [] };
}

/** A piece by its schema, if need be without the values at fault: their defaults do for looking at the rest. */
function piece<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  standIn = {},
): z.output<Schema> | undefined {
  const pruned: unknown = structuredClone(value);
  for (let round = 0; round < MAX_PRUNING_ROUNDS; round++) {
    const result = schema.safeParse(isMapping(pruned) ? { ...standIn, ...pruned } : pruned);
    if (result.success) return result.data;
    for (const { path } of findings(result.error.issues, pruned)) prune(pruned, path);
  }
  return undefined;
}

/** Values nest this deep at most: what cannot be mended by dropping a value is mended by dropping its holder. */
const MAX_PRUNING_ROUNDS = 4;

/** Drops what is at fault, or the nearest holder that is there. A list goes as a whole: its indexes must not shift. */
function prune(data: unknown, path: Path): void {
  const listAt = path.findIndex((segment) => typeof segment === 'number');
  for (let length = listAt < 0 ? path.length : listAt; length > 0; length--) {
    const holder = valueAt(data, path.slice(0, length - 1));
    const key = path[length - 1];
    if (!isMapping(holder) || typeof key !== 'string' || !Object.hasOwn(holder, key)) continue;
    delete holder[key];
    return;
  }
}

/** `${PORTS:-64}` and `${ACCESS:-true}` are text to YAML; where a number or a boolean is due, they are read as one. */
function withTypedExpansions(
  data: unknown,
  issues: readonly z.core.$ZodIssue[],
  document: Document,
): unknown {
  const copy: unknown = structuredClone(data);
  let changed = false;
  for (const { path } of findings(issues, data)) {
    const text = document.isExpanded(path) ? valueAt(data, path) : undefined;
    const holder = valueAt(copy, path.slice(0, -1));
    if (typeof text !== 'string' || !isMapping(holder) || !/^(true|false|[0-9]{1,9})$/.test(text)) continue;
    holder[String(path.at(-1))] = text === 'true' || text === 'false' ? text === 'true' : Number(text);
    changed = true;
  }
  return changed ? copy : undefined;
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
