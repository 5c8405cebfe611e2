/**
 * The edge rules as data: what each says in a line, and with which part of the project it is due.
 *
 * A test cites a rule by its id in its own name or in the name of its suite (`R12: a preflight …`). The runner
 * prints which of the rules due so far no passing test cites, and fails on them.
 */

/** A part of the project, in the order they are built. */
export type Part = 1 | 2 | 3 | 4 | 5;

export interface Requirement {
  readonly id: `R${number}`;
  readonly title: string;
  /** The part it is due with. */
  readonly due: Part;
}

/** How far the project is: rules due with a later part may still be without a test. */
export const DUE_PART: Part = 5;

export const REQUIREMENTS: readonly Requirement[] = [
  // Requests
  { id: 'R1', title: 'a wrapped name and its plain spelling are one name', due: 1 },
  { id: 'R2', title: 'unreadable mirrored headers are refused before anything is sent upstream', due: 1 },
  { id: 'R3', title: 'headers that disagree with the body are refused before the cache', due: 1 },
  { id: 'R4', title: 'headers that must be single are refused when sent twice', due: 1 },
  { id: 'R5', title: 'errors come in one order; without Mcp-Method the body decides', due: 1 },
  { id: 'R6', title: 'no parser behind the gateway sees another value than the one checked', due: 2 },
  { id: 'R7', title: 'media type, size and header limits have their own statuses', due: 1 },
  { id: 'R8', title: 'ids keep type and spelling; refusals carry the id; own ids upstream', due: 1 },
  { id: 'R9', title: 'hop-by-hop headers stay; static headers cannot replace computed ones', due: 1 },
  { id: 'R10', title: 'names, URIs and values are compared as given', due: 1 },
  { id: 'R11', title: 'client responses are refused, notifications accepted and kept', due: 1 },
  { id: 'R12', title: 'a preflight allows what the protocol uses, answers expose what it sends', due: 1 },
  // Lists
  { id: 'R13', title: 'only an absent nextCursor ends a list', due: 1 },
  { id: 'R14', title: 'a cursor that is not ours for this list is refused', due: 1 },
  { id: 'R15', title: 'a cursor refused upstream in mid-walk ends the walk visibly', due: 2 },
  { id: 'R16', title: 'one bad item is dropped alone', due: 1 },
  {
    id: 'R17',
    title: 'an announced primitive that is answered with "no such method" is just absent',
    due: 1,
  },
  { id: 'R18', title: 'large lists: every item once, stable, linear, bounded', due: 1 },
  { id: 'R19', title: 'published names depend on the configuration only', due: 1 },
  { id: 'R20', title: 'unknown fields survive; unknown result types are not stored', due: 1 },
  { id: 'R21', title: 'merged hints are the least time and the strictest scope', due: 1 },
  // Cache
  { id: 'R22', title: 'callers differ by every credential, and no credential is kept', due: 1 },
  { id: 'R23', title: 'coalescing never shares what is not known to be public', due: 1 },
  { id: 'R24', title: 'entries belong to the configured upstream, whatever it claims', due: 1 },
  { id: 'R25', title: 'what is not a whole, plain, timed answer is not stored', due: 2 },
  { id: 'R26', title: 'a strange ttlMs never raises, never lasts for ever', due: 2 },
  { id: 'R27', title: 'the time in the cache counts, by a clock that only moves on', due: 1 },
  { id: 'R28', title: 'an invalidation outranks the read in flight', due: 2 },
  { id: 'R29', title: 'Redis in trouble costs no answer and brings nothing old back', due: 3 },
  { id: 'R30', title: 'memory is bounded in bytes, whoever is slow or large', due: 2 },
  { id: 'R31', title: 'not found, empty and failed are three answers', due: 1 },
  // Upstream answers
  { id: 'R32', title: 'an answer may be JSON or any legal form of SSE', due: 1 },
  { id: 'R33', title: 'length and encoding headers fit the bytes sent', due: 1 },
  { id: 'R34', title: 'streams are relayed event by event as they come', due: 1 },
  { id: 'R35', title: 'a client that leaves ends its upstream work', due: 1 },
  { id: 'R36', title: 'one retry, idempotent and before an answer only; no redirects', due: 1 },
  { id: 'R37', title: 'whose error it is decides what the client sees', due: 1 },
  { id: 'R38', title: 'a deadline for every phase, and a circuit that closes again', due: 2 },
  // Streams of change
  { id: 'R39', title: 'a listen is acknowledged first and says only what was asked', due: 3 },
  { id: 'R40', title: 'a broken upstream stream is reopened, one not offered left alone', due: 3 },
  { id: 'R41', title: 'a storm of notifications is coalesced, the last one delivered', due: 3 },
  { id: 'R42', title: 'nobody is told about what they may not read', due: 3 },
  // Operation
  { id: 'R43', title: 'a drain finishes what it can and exits as documented', due: 3 },
  { id: 'R44', title: 'a reload never takes the gateway down', due: 5 },
  { id: 'R45', title: 'metric labels are closed sets', due: 1 },
  { id: 'R46', title: 'no secret reaches logs, metrics or other callers', due: 2 },
  { id: 'R47', title: 'trace context passes, and is never part of a key', due: 5 },
  { id: 'R48', title: 'an idle gateway is quiet', due: 5 },
];
