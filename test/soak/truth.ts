/**
 * What the soak's upstreams hold, and every version that each resource ever had.
 *
 * Pure: it is told the time. A resource that was removed has a last version, in which it is absent.
 */

export type UpstreamName = 'alpha' | 'beta' | 'gamma';
export type Scope = 'public' | 'private';

/** One version, from when it was until the next one came. */
export interface Version {
  readonly number: number;
  readonly state: 'there' | 'absent';
  readonly from: number;
  /** Infinity while it is the newest. */
  until: number;
}

/** A resource, as it is made. */
export interface Made {
  readonly uri: string;
  readonly upstream: UpstreamName;
  readonly ttlMs: number;
  /** `turning`: public and private by turns, from one version to the next. */
  readonly scope: Scope | 'turning';
  /** The only caller who may see it; undefined: everybody, each with bytes of their own where it is private. */
  readonly owner?: string;
}

export interface Resource extends Made {
  readonly versions: Version[];
}

/** What is written into the text of every answer. */
export interface Stamp {
  readonly upstream: string;
  readonly uri: string;
  readonly version: number;
  readonly madeFor: string;
  readonly scope: Scope;
}

export class Truth {
  readonly #resources = new Map<string, Resource>();
  readonly #listChanges = new Map<UpstreamName, number[]>();

  /** Adds it, or brings it back. */
  add(made: Made, at: number): void {
    const known = this.#resources.get(made.uri);
    if (known === undefined) {
      this.#resources.set(made.uri, {
        ...made,
        versions: [
          { number: 0, state: 'absent', from: Number.NEGATIVE_INFINITY, until: at },
          { number: 1, state: 'there', from: at, until: Number.POSITIVE_INFINITY },
        ],
      });
    } else this.#next(known, 'there', at);
    this.#listChanged(made.upstream, at);
  }

  change(uri: string, at: number): void {
    this.#next(this.resource(uri), 'there', at);
  }

  remove(uri: string, at: number): void {
    const resource = this.resource(uri);
    this.#next(resource, 'absent', at);
    this.#listChanged(resource.upstream, at);
  }

  find(uri: string): Resource | undefined {
    return this.#resources.get(uri);
  }

  resource(uri: string): Resource {
    const resource = this.#resources.get(uri);
    if (resource === undefined) throw new Error(`no resource ${uri}`);
    return resource;
  }

  /** All that an upstream ever had. */
  of(upstream: UpstreamName): readonly Resource[] {
    return [...this.#resources.values()].filter((resource) => resource.upstream === upstream);
  }

  /** What an upstream shows to a caller now, in its order. */
  shown(upstream: UpstreamName, caller: string): readonly Resource[] {
    return this.of(upstream).filter(
      (resource) => newest(resource).state === 'there' && visible(resource, caller),
    );
  }

  /** When the upstream's list changed, the first filling included. */
  listChanges(upstream: UpstreamName): readonly number[] {
    return this.#listChanges.get(upstream) ?? [];
  }

  #next({ versions }: Resource, state: Version['state'], at: number): void {
    const last = versions.at(-1);
    if (last !== undefined) last.until = at;
    versions.push({ number: (last?.number ?? 0) + 1, state, from: at, until: Number.POSITIVE_INFINITY });
  }

  #listChanged(upstream: UpstreamName, at: number): void {
    this.#listChanges.set(upstream, [...this.listChanges(upstream), at]);
  }
}

export function newest({ versions }: Resource): Version {
  const last = versions.at(-1);
  if (last === undefined) throw new Error('a resource without versions');
  return last;
}

export function visible({ owner }: Made, caller: string): boolean {
  return owner === undefined || owner === caller;
}

export function scopeOf({ scope }: Made, version: number): Scope {
  if (scope !== 'turning') return scope;
  return version % 2 === 1 ? 'public' : 'private';
}

/** Reads a text of an answer; undefined when no upstream of the soak wrote it. */
export function readStamp(text: unknown): Stamp | undefined {
  try {
    const stamp = JSON.parse(String(text)) as Partial<Stamp> | null;
    return typeof stamp?.uri === 'string' && typeof stamp.version === 'number' ? (stamp as Stamp) : undefined;
  } catch {
    return undefined;
  }
}
