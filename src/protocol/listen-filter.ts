/**
 * What a `subscriptions/listen` asks for, and what of it is honoured: as a value, as JSON, and as a question.
 * *Spec:* schema 2026-07-28, `SubscriptionFilter`; Tasks extension, `taskIds`.
 */
import { arrayElements, kindAt, type Member, objectMembers, type Span, stringValue, textOf } from './json.ts';

/** A list that can change. */
export type ListName = 'tools' | 'prompts' | 'resources';

/** What is listened for. */
export interface ListenFilter {
  readonly toolsListChanged: boolean;
  readonly promptsListChanged: boolean;
  readonly resourcesListChanged: boolean;
  /** URIs; one stands for what lies below it, too. */
  readonly resourceSubscriptions: readonly string[];
  readonly taskIds?: readonly string[];
}

/** The lists, and the members that ask for them. */
export const LIST_FLAGS = {
  tools: 'toolsListChanged',
  prompts: 'promptsListChanged',
  resources: 'resourcesListChanged',
} as const satisfies Readonly<Record<ListName, keyof ListenFilter>>;
const LISTS = Object.keys(LIST_FLAGS) as readonly ListName[];

/** A filter that asks for nothing. */
export const NOTHING: ListenFilter = {
  toolsListChanged: false,
  promptsListChanged: false,
  resourcesListChanged: false,
  resourceSubscriptions: [],
};

/** What a notification of a listen is about. */
export type Subject =
  | { readonly kind: 'list'; readonly list: ListName }
  | { readonly kind: 'uri'; readonly uri: string }
  | { readonly kind: 'task'; readonly taskId: string };

/** True for a filter that asks for nothing. */
export function isNothing(filter: ListenFilter): boolean {
  const { resourceSubscriptions: uris, taskIds = [] } = filter;
  return LISTS.every((list) => !filter[LIST_FLAGS[list]]) && uris.length + taskIds.length === 0;
}

/** The JSON text of `params.notifications`: what is not asked for is left out. */
export function filterText(filter: ListenFilter): string {
  const { resourceSubscriptions: uris, taskIds = [] } = filter;
  const members = LISTS.filter((list) => filter[LIST_FLAGS[list]]).map(
    (list) => `"${LIST_FLAGS[list]}":true`,
  );
  if (uris.length > 0) members.push(`"resourceSubscriptions":${JSON.stringify(uris)}`);
  if (taskIds.length > 0) members.push(`"taskIds":${JSON.stringify(taskIds)}`);
  return `{${members.join(',')}}`;
}

/** Reads `params.notifications`; unknown members are left out. @returns undefined for what is no filter. */
export function readFilter(bytes: Uint8Array, { start }: Span): ListenFilter | undefined {
  const members = objectMembers(bytes, start);
  if (members === undefined) return undefined;
  const known = new Map<string, Member>();
  for (const member of members) {
    // Two parsers would read two filters.
    if (known.has(member.key)) return undefined;
    known.set(member.key, member);
  }
  const flag = (list: ListName): boolean | undefined => {
    const member = known.get(LIST_FLAGS[list]);
    if (member === undefined) return false;
    return kindAt(bytes, member.start) === 'boolean' ? textOf(bytes, member) === 'true' : undefined;
  };
  const strings = (key: string): readonly string[] | undefined => {
    const member = known.get(key);
    return member === undefined ? [] : stringsAt(bytes, member);
  };
  const [tools, prompts, resources] = [flag('tools'), flag('prompts'), flag('resources')];
  const [uris, taskIds] = [strings('resourceSubscriptions'), strings('taskIds')];
  if (tools === undefined || prompts === undefined || resources === undefined) return undefined;
  if (uris === undefined || taskIds === undefined) return undefined;
  return filterOf((list) => ({ tools, prompts, resources })[list], uris, taskIds);
}

function stringsAt(bytes: Uint8Array, { start }: Span): readonly string[] | undefined {
  const strings = arrayElements(bytes, start)?.map((element) => stringValue(bytes, element));
  return strings?.every((text) => text !== undefined) ? strings : undefined;
}

/** A filter of these parts. */
export function filterOf(
  asks: (list: ListName) => boolean,
  resourceSubscriptions: readonly string[],
  taskIds: readonly string[],
): ListenFilter {
  return {
    toolsListChanged: asks('tools'),
    promptsListChanged: asks('prompts'),
    resourcesListChanged: asks('resources'),
    resourceSubscriptions,
    ...(taskIds.length > 0 && { taskIds }),
  };
}

/** What is listened for, asked about one thing at a time; the whole of it only when it must be, for it may be large. */
export interface Wanted {
  readonly filter: ListenFilter;
  /** Whether this very thing is asked for. */
  has(subject: Subject): boolean;
  /** The same, or a URI above it. */
  covers(subject: Subject): boolean;
}

/** URIs of one upstream that are listened for at a time, for all who see the same of it. */
export const LISTENED_URIS = 10_000;

/** A filter that can be asked what it covers. */
export class Coverage implements Wanted {
  readonly filter: ListenFilter;
  readonly #uris: ReadonlySet<string>;
  readonly #tasks: ReadonlySet<string>;
  /** Of the URIs: what lies between is not cut out of a long URI with many slashes, only to be looked up in vain. */
  readonly #lengths = new Set<number>();

  constructor(filter: ListenFilter) {
    this.filter = filter;
    this.#uris = new Set(filter.resourceSubscriptions);
    this.#tasks = new Set(filter.taskIds);
    for (const uri of this.#uris) this.#lengths.add(uri.length);
  }

  /** Whether this very thing is asked for. */
  has(subject: Subject): boolean {
    switch (subject.kind) {
      case 'list':
        return this.filter[LIST_FLAGS[subject.list]];
      case 'uri':
        return this.#uris.has(subject.uri);
      case 'task':
        return this.#tasks.has(subject.taskId);
    }
  }

  /** The same, or a URI above it: one that it continues at a `/`, `?` or `#`. *Spec:* server/resources. */
  covers(subject: Subject): boolean {
    if (this.has(subject)) return true;
    return subject.kind === 'uri' && this.above(subject.uri) !== undefined;
  }

  /** The highest URI asked for that a URI lies below. */
  above(uri: string): string | undefined {
    for (const above of urisAbove(uri, this.#lengths)) if (this.#uris.has(above)) return above;
    return undefined;
  }
}

/** The URIs that a URI lies below, the highest first. @param lengths of those that are of interest. */
export function* urisAbove(uri: string, lengths: Pick<ReadonlySet<number>, 'has'>): Generator<string> {
  for (let i = 1; i < uri.length; i++) {
    const char = uri[i];
    if (char !== '/' && char !== '?' && char !== '#') continue;
    if (lengths.has(i)) yield uri.slice(0, i);
    if (char === '/' && i + 1 < uri.length && lengths.has(i + 1)) yield uri.slice(0, i + 1);
  }
}

/** What of the first is in the second, too. */
export function within(filter: ListenFilter, other: Pick<Wanted, 'has'>): ListenFilter {
  return kept(filter, (subject) => other.has(subject));
}

/** What of the first is not in the second. */
export function without(filter: ListenFilter, other: Pick<Wanted, 'has'>): ListenFilter {
  return kept(filter, (subject) => !other.has(subject));
}

function kept(filter: ListenFilter, keep: (subject: Subject) => boolean): ListenFilter {
  return filterOf(
    (list) => filter[LIST_FLAGS[list]] && keep({ kind: 'list', list }),
    filter.resourceSubscriptions.filter((uri) => keep({ kind: 'uri', uri })),
    (filter.taskIds ?? []).filter((taskId) => keep({ kind: 'task', taskId })),
  );
}

/** What either asks for; what both name is named once. */
export function joined(one: ListenFilter, other: ListenFilter): ListenFilter {
  return together([one, without(other, new Coverage(one))]);
}

/** Its things, one by one. */
export function subjectsOf(filter: ListenFilter): Subject[] {
  return [
    ...LISTS.filter((list) => filter[LIST_FLAGS[list]]).map((list): Subject => ({ kind: 'list', list })),
    ...filter.resourceSubscriptions.map((uri): Subject => ({ kind: 'uri', uri })),
    ...(filter.taskIds ?? []).map((taskId): Subject => ({ kind: 'task', taskId })),
  ];
}

/** What any of them asks for. They name no URI twice. */
export function together(filters: readonly ListenFilter[]): ListenFilter {
  return filterOf(
    (list) => filters.some((filter) => filter[LIST_FLAGS[list]]),
    filters.flatMap((filter) => filter.resourceSubscriptions),
    filters.flatMap((filter) => filter.taskIds ?? []),
  );
}
