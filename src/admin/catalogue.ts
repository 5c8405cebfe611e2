/**
 * The merged catalogue of a route, a page at a time: what is listed, whose it is, and which template a resource fits.
 */
import type { RouteRuntime } from '../pipeline.ts';
import { META_INCOMPLETE } from '../protocol/meta.ts';
import { Abort, type Signal } from '../protocol/signal.ts';
import type { Owned } from '../routing/ownership.ts';
import { compileTemplate } from '../routing/template.ts';
import { pageBudget, TemplateIndex } from '../routing/template-index.ts';
import {
  type Asker,
  anonymousHead,
  askAnonymously,
  type Heard,
  MAX_URI_CHARS,
  recordOf,
  textIn,
} from './ask.ts';
import type { ListAnswer, Listed, ListedItem, ListRequest } from './page/contract.ts';

/** What is shown of an item beside its id. */
const MAX_NAME_CHARS = 200;
const MAX_DESCRIPTION_CHARS = 500;
/** Names of upstreams that a page lacks. */
const MAX_INCOMPLETE = 256;
/** How long the templates of a route are taken to be what they were. */
const TEMPLATES_MS = 30_000;

interface Shape {
  readonly method: string;
  readonly field: string;
  readonly idField: 'uri' | 'uriTemplate' | 'name';
}

const SHAPES: Readonly<Record<Listed, Shape>> = {
  resources: { method: 'resources/list', field: 'resources', idField: 'uri' },
  templates: { method: 'resources/templates/list', field: 'resourceTemplates', idField: 'uriTemplate' },
  tools: { method: 'tools/list', field: 'tools', idField: 'name' },
  prompts: { method: 'prompts/list', field: 'prompts', idField: 'name' },
};

/** What can be listed. */
export const LISTED = Object.keys(SHAPES) as readonly Listed[];

/** The templates of routes, to find the one that a resource fits. */
export class Catalogue {
  readonly #asker: Asker;
  /** Of a route that a reload has replaced nothing is kept. */
  readonly #templates = new WeakMap<
    RouteRuntime,
    { readonly until: number; readonly of: Promise<Templates> }
  >();

  constructor(asker: Asker) {
    this.#asker = asker;
  }

  /** `POST /api/list`. */
  async page(route: RouteRuntime, { list, cursor }: ListRequest, signal: Signal): Promise<ListAnswer> {
    const heard = await this.#list(route, list, cursor, signal);
    const { how } = heard;
    if (heard.kind === 'trouble') return { how, items: [], incomplete: [], trouble: heard.trouble };
    const result = heard.kind === 'result' ? heard.result : {};
    const items = itemsOf(result, list);
    const templates = list === 'resources' && items.length > 0 ? await this.templates(route) : NONE;
    const ownerOf = this.#owners(route, list);
    const budget = pageBudget();
    const nextCursor = textIn(result.nextCursor, Number.POSITIVE_INFINITY);
    return {
      how,
      items: items.map((item) => {
        const owner = ownerOf(item.id);
        const template = templates.fitting(item.id, budget);
        return {
          ...item,
          ...(owner !== undefined && { owner }),
          ...(template !== undefined && { template }),
        };
      }),
      ...(nextCursor !== undefined && { nextCursor }),
      ...hintsOf(result),
      incomplete: incompleteOf(result),
    };
  }

  /** The first page of a route's templates, compiled; nothing where they cannot be had. */
  templates(route: RouteRuntime): Promise<Templates> {
    const now = this.#asker.now();
    const known = this.#templates.get(route);
    if (known !== undefined && now < known.until) return known.of;
    // For whoever else asks meanwhile: it does not end with the one who asks first.
    const of = this.#list(route, 'templates', undefined, new Abort()).then(
      (heard) => (heard.kind === 'result' ? new Templates(itemsOf(heard.result, 'templates')) : NONE),
      () => NONE,
    );
    this.#templates.set(route, { until: now + TEMPLATES_MS, of });
    return of;
  }

  #list(route: RouteRuntime, list: Listed, cursor: string | undefined, signal: Signal): Promise<Heard> {
    const params = cursor === undefined ? {} : { cursor };
    const question = { route: route.config.path, method: SHAPES[list].method, params };
    return askAnonymously(this.#asker, question, signal);
  }

  #owners({ members, routing, identify }: RouteRuntime, list: Listed): (id: string) => string | undefined {
    const owned: Owned = list;
    const context = identify(anonymousHead(SHAPES[list].method));
    const only = members.length === 1 ? members[0]?.config.name : undefined;
    return (id) => {
      if (only !== undefined) return only;
      const rank = routing.ownerOfListed(owned, id, context);
      return rank === undefined ? undefined : members[rank]?.config.name;
    };
  }
}

/** Templates of a route, in the order in which they are listed. */
class Templates {
  readonly #index = new TemplateIndex();
  readonly #texts: string[] = [];

  constructor(items: readonly ListedItem[]) {
    for (const { id } of items) {
      const compiled = compileTemplate(id);
      if (compiled.kind === 'template') this.#index.add(compiled.template, this.#texts.push(id) - 1);
    }
  }

  /** The first that this URI can come of. */
  fitting(uri: string, budget = pageBudget()): string | undefined {
    const at = this.#index.lookup(uri, undefined, budget);
    return at === undefined ? undefined : this.#texts[at];
  }
}

export type { Templates };

const NONE = new Templates([]);

function itemsOf(result: Readonly<Record<string, unknown>>, list: Listed): readonly ListedItem[] {
  const { field, idField } = SHAPES[list];
  const items = result[field];
  return (Array.isArray(items) ? items : []).map((item) => itemOf(recordOf(item), idField));
}

function itemOf(item: Readonly<Record<string, unknown>>, idField: Shape['idField']): ListedItem {
  const id = String(item[idField] ?? '');
  const name = idField === 'name' ? undefined : textIn(item.name, MAX_NAME_CHARS);
  const title = textIn(item.title, MAX_NAME_CHARS);
  const description = textIn(item.description, MAX_DESCRIPTION_CHARS);
  const mimeType = textIn(item.mimeType, MAX_NAME_CHARS);
  return {
    id: textIn(id, MAX_URI_CHARS) ?? '',
    ...(id.length > MAX_URI_CHARS && { isCut: true as const }),
    ...(name !== undefined && { name }),
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    ...(mimeType !== undefined && { mimeType }),
    ...(typeof item.size === 'number' && { size: item.size }),
  };
}

/** What a result says of how long it lives, and for whom. */
export function hintsOf(result: Readonly<Record<string, unknown>>): { ttlMs?: number; scope?: string } {
  const { ttlMs, cacheScope } = result;
  return {
    ...(typeof ttlMs === 'number' && { ttlMs }),
    ...(typeof cacheScope === 'string' && { scope: cacheScope }),
  };
}

function incompleteOf(result: Readonly<Record<string, unknown>>): readonly string[] {
  const names = recordOf(result._meta)[META_INCOMPLETE];
  return (Array.isArray(names) ? names : []).slice(0, MAX_INCOMPLETE).map(String);
}
