/** What was seen of a server: plain data, judged and told elsewhere. Every text in it is safe to print. */
import type { Failure } from '../upstream/types.ts';

/** Why something was not answered, in an operator's words. */
export interface Trouble {
  readonly kind: 'error' | 'refused' | 'odd' | 'tls' | Failure['kind'];
  readonly words: string;
  /** Of a JSON-RPC error. */
  readonly code?: number;
  /** HTTP. */
  readonly status?: number;
}

/** What a cacheable result says of itself, and what the gateway makes of it. */
export interface HintFacts {
  /** `wrong`: no whole number of milliseconds ≥ 0. */
  readonly ttl: { readonly kind: 'given'; readonly ms: number } | { readonly kind: 'absent' | 'wrong' };
  readonly scope: 'public' | 'private' | 'absent' | 'wrong';
  /** Under the configuration: how long it is kept, and for whom. */
  readonly kept: { readonly ttlMs: number; readonly scope: 'public' | 'private' };
}

/** What `server/discover`, or an older server's `initialize`, came to. */
export type HelloFacts =
  | {
      readonly kind: 'met';
      readonly era: 'modern' | 'older';
      /** The revision that is spoken with it. */
      readonly revision: string;
      readonly versions: readonly string[];
      readonly serverInfo: { readonly name: string; readonly version: string } | undefined;
      /** By name, with what each promises. */
      readonly capabilities: Readonly<Record<string, readonly string[]>>;
      readonly instructionsChars: number;
      readonly hints: HintFacts;
      /** How an ordinary answer comes; undefined: over standard output, or not known. */
      readonly media: 'json' | 'sse' | undefined;
      /** The first answer, connecting included; then the median of some more. */
      readonly firstMs: number;
      readonly medianMs: number;
    }
  | {
      readonly kind: 'unmet';
      readonly trouble: Trouble;
      /** How what came instead begins. */
      readonly excerpt: string | undefined;
    };

/** How a walk through a list ended. */
export type WalkEnd =
  | 'end'
  | 'same-cursor'
  | 'repeated-cursor'
  | 'long-cursor'
  | 'odd-cursor'
  | 'pages'
  | 'items'
  | 'bytes'
  | 'time'
  | 'refused-cursor';

/** Some of many. */
export interface Some {
  readonly count: number;
  readonly first: readonly string[];
}

export type ListFacts = { readonly method: string } & (
  | {
      readonly kind: 'walked';
      readonly pages: number;
      readonly items: number;
      readonly bytes: number;
      readonly largestPageBytes: number;
      readonly firstMs: number;
      readonly medianMs: number;
      readonly totalMs: number;
      /** Of the first page. */
      readonly hints: HintFacts;
      readonly hintsDiffer: boolean;
      readonly end: WalkEnd;
      /** Items that the gateway leaves out, and why. */
      readonly dropped: Some;
      /** Ids that come more than once. */
      readonly duplicates: Some;
      /** Templates that own nothing, for they begin with an expression. */
      readonly unowning: Some;
      /** Templates that no listed resource fits. */
      readonly unmatched: Some;
    }
  /** Announced, and yet not there. */
  | { readonly kind: 'absent'; readonly trouble: Trouble }
  | { readonly kind: 'failed'; readonly trouble: Trouble; readonly pages: number }
);

export type ReadFacts = { readonly uri: string } & (
  | {
      readonly kind: 'read';
      readonly ms: number;
      readonly bytes: number;
      readonly hints: HintFacts;
      /** `none`: there are no contents; `invalid`: they are not as the schema says. */
      readonly contents: 'own-uri' | 'other-uri' | 'none' | 'invalid';
    }
  | { readonly kind: 'large'; readonly aboveBytes: number }
  /** Wants an answer from the client first. */
  | { readonly kind: 'asks' }
  | { readonly kind: 'failed'; readonly trouble: Trouble }
);

/** What is done that a server must refuse. */
export type CheckName =
  | 'method-header'
  | 'name-header'
  | 'unknown-version'
  | 'unknown-method'
  | 'unknown-resource';

export interface CheckFacts {
  readonly name: CheckName;
  readonly outcome: 'refused' | 'refused-otherwise' | 'accepted' | 'unanswered';
  /** What came, in words. */
  readonly came: string;
}

export type ListenFacts =
  | { readonly kind: 'not-announced' }
  | {
      readonly kind: 'acknowledged';
      readonly ms: number;
      readonly asked: readonly string[];
      readonly honoured: readonly string[];
    }
  | { readonly kind: 'refused' | 'failed'; readonly asked: readonly string[]; readonly words: string };

/** Everything. Undefined: not looked at. */
export interface Facts {
  readonly target: {
    readonly name: string;
    /** Where it is, without what may be a secret. */
    readonly address: string;
    readonly over: 'http' | 'process';
    readonly credential: 'none' | 'bearer' | 'header';
    readonly subscribe: boolean;
  };
  readonly hello: HelloFacts;
  readonly lists: readonly ListFacts[];
  readonly reads: readonly ReadFacts[];
  readonly checks: readonly CheckFacts[];
  readonly listen: ListenFacts | undefined;
}
