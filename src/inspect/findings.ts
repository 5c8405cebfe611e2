/** What an operator should know: every finding there is, with what it means and what to do. */

/** `violation`: breaks what the specification demands, or keeps the gateway from its work. */
export type Severity = 'violation' | 'warning' | 'note';

export interface Finding {
  /** Stable: scripts may look for it. */
  readonly id: FindingId;
  readonly severity: Severity;
  /** Methods, resources or items that it is about. */
  readonly where: readonly string[];
  /** What is wrong. */
  readonly says: string;
  /** What the gateway does about it. */
  readonly gateway: string;
  /** What to do. */
  readonly remedy: string;
}

type Row = readonly [severity: Severity, says: string, gateway: string, remedy: string];

const OWN_WORD = 'mend it in the server; until then write cache.ttl.default or a cache.rules entry for it';
const VALIDATE =
  'mend it in the server, or upgrade its SDK: specification, "Server Validation"; and let nothing but the gateway reach it';

/** Every finding. Never reuse an id for something else. */
export const FINDINGS = {
  unreachable: [
    'violation',
    'it does not answer',
    'requests for it get an error (502 to 504), or a stale answer within staleIfError',
    'start it, or mend the address or the network',
  ],
  'bad-certificate': [
    'violation',
    'its TLS does not work for this machine',
    'TLS is always verified: requests for it fail',
    'mend the certificate, or give its CA to Node (NODE_EXTRA_CA_CERTS), here and for the gateway',
  ],
  unauthorized: [
    'violation',
    'it wants another credential',
    'requests for it fail, unless the token of the caller is forwarded',
    'give one here by -c FILE --upstream NAME, --bearer-file or HEADGATE_BEARER; in the configuration under auth',
  ],
  'not-mcp': [
    'violation',
    'what answers there is no MCP server',
    'it counts as unseen, and requests for it fail',
    'check the path of the URL: most servers answer at /mcp',
  ],
  'no-common-revision': [
    'violation',
    'it offers no revision that the gateway speaks',
    'it is left out',
    'upgrade the server',
  ],
  'older-revision': [
    'note',
    'it speaks an older revision',
    'it is translated; older revisions have no caching hints, so nothing is kept without your word',
    'write cache.ttl.default or cache.rules for it, or upgrade the server',
  ],
  'slow-answers': [
    'warning',
    'answers take longer than 2 s',
    'server/discover and first pages wait for it only so long',
    'find out what it waits for',
  ],
  'ttl-missing': [
    'violation',
    'ttlMs is missing',
    'it is not kept, unless the configuration says for how long',
    OWN_WORD,
  ],
  'ttl-wrong': [
    'violation',
    'ttlMs is no whole number of milliseconds ≥ 0',
    'it counts as 0: not kept',
    'mend it in the server',
  ],
  'ttl-zero': [
    'note',
    'ttlMs is 0',
    'it is not kept: every request goes to the server',
    'let the server say how long an answer holds; the gateway cannot outbid it',
  ],
  'ttl-long': [
    'warning',
    'ttlMs is longer than a day',
    'it is kept for ttl.max at most',
    'say less, or be sure that every change is notified',
  ],
  'scope-missing': [
    'violation',
    'cacheScope is missing',
    'it counts as private: kept for each caller apart',
    'mend it in the server; until then write cache.scope or a cache.rules entry with a scope',
  ],
  'scope-wrong': [
    'violation',
    'cacheScope is neither public nor private',
    'it counts as private: kept for each caller apart',
    'mend it in the server',
  ],
  'public-with-credential': [
    'warning',
    'cacheScope is public although a credential was sent',
    'one answer is shown to every caller, whatever its credential',
    'make sure that it is the same for everybody; otherwise write cache.scope: private',
  ],
  'hints-differ': [
    'warning',
    'the pages of a list differ in their hints',
    'the strictest scope and the least time count',
    'give all pages of a list the same hints',
  ],
  'list-absent': [
    'warning',
    'it announces a list and then does not know the method',
    'it counts as having none of it',
    'take the capability back, or serve the method',
  ],
  'list-failed': [
    'violation',
    'a list cannot be had',
    'merged lists leave it out and say so, with ttlMs 0',
    'mend it in the server',
  ],
  'items-dropped': [
    'violation',
    'items of a list are not as the specification says',
    'these items are left out, the others stay',
    'mend them in the server',
  ],
  'duplicate-ids': [
    'warning',
    'a list names the same more than once',
    'each of them is passed on as it comes',
    'list each once',
  ],
  'cursor-repeats': [
    'violation',
    'a list goes round: a cursor comes again',
    'the walk ends there: what lies behind is not listed',
    'mend it in the server',
  ],
  'cursor-wrong': [
    'violation',
    'nextCursor is no string, or longer than 8 KiB',
    'the walk ends there: what lies behind is not listed',
    'mend it in the server',
  ],
  'cursor-refused': [
    'violation',
    'it refuses a cursor of its own',
    'the client is told to begin again (-32602)',
    'mend it in the server',
  ],
  'list-unfinished': [
    'warning',
    'a list was not walked to its end here: it is very long, or endless',
    'walks are bounded by 10,000 pages; names behind 5 s of walking are not routed',
    'make the pages larger, or claim what it has: resources, tools, prompts',
  ],
  'list-slow': [
    'warning',
    'to walk a list takes longer than 5 s',
    'who owns a name is learnt within 5 s: names behind are not routed',
    'make the pages larger, or claim what it has: resources, tools, prompts',
  ],
  'template-owns-nothing': [
    'warning',
    'a template begins with an expression',
    'it is listed and owns nothing, or it would take the URIs of everybody',
    'begin it with a scheme of its own, or claim its URIs',
  ],
  'template-unmatched': [
    'note',
    'no listed resource fits a template',
    'URIs that fit are routed here all the same',
    'nothing, if its resources are not meant to be listed',
  ],
  'read-failed': [
    'warning',
    'a resource cannot be read',
    'the error is passed on and not kept',
    'list only what can be read',
  ],
  'read-invalid': [
    'violation',
    'the contents of a resource are not as the specification says',
    'they are passed on, and clients may refuse them',
    'mend it in the server',
  ],
  'read-other-uri': [
    'note',
    'contents carry other URIs than the one that was asked for',
    'notifications for these URIs drop it, too',
    'nothing, if it is a folder or the like',
  ],
  'read-empty': [
    'note',
    'a read came without contents',
    'it is passed on and never kept: it may mean that there is no such resource',
    'answer -32602 for what is not there',
  ],
  'read-large': [
    'note',
    'a resource is larger than the cache takes',
    'it flows to each client, and is not kept',
    'raise cache.memory.maxEntry if it is read often',
  ],
  'read-asks': [
    'note',
    'to read a resource, an answer of the client is needed first',
    'the question is passed on, and nothing is kept',
    'nothing',
  ],
  'method-header-unchecked': [
    'violation',
    'a request whose Mcp-Method contradicts its body is taken',
    'the gateway itself checks what comes through it',
    VALIDATE,
  ],
  'name-header-unchecked': [
    'violation',
    'a request whose Mcp-Name contradicts its body is taken',
    'the gateway itself checks what comes through it',
    VALIDATE,
  ],
  'version-unchecked': [
    'violation',
    'a request of a revision that does not exist is answered',
    'nothing: it sends 2026-07-28 only',
    'refuse it with -32022 and the revisions that are supported',
  ],
  'unknown-method-answered': [
    'violation',
    'a method that does not exist is answered',
    'the answer is passed on',
    'refuse it with -32601 and HTTP 404',
  ],
  'unknown-resource-answered': [
    'warning',
    'a resource that nobody has is answered',
    'on a route with others it may take URIs that nobody lists',
    'answer -32602; until then claim what it has, by resources',
  ],
  'refused-otherwise': [
    'violation',
    'what must be refused is refused in another way than the specification says',
    'where the refusal says too little, it counts as a trouble of the server',
    'answer with the code and status of the specification',
  ],
  'check-unanswered': [
    'warning',
    'what must be refused was not answered at all',
    'a request like it fails with 502 or 504',
    'look into the log of the server',
  ],
  'listen-refused': [
    'violation',
    'it announces changes, and refuses subscriptions/listen',
    'it is asked again after minutes; what is kept lives by its ttl',
    'serve subscriptions/listen, or take the promise back',
  ],
  'listen-failed': [
    'warning',
    'subscriptions/listen was not acknowledged',
    'it is tried again, ever more seldom; what is kept lives by its ttl',
    'acknowledge at once; let no proxy buffer event streams',
  ],
  'listen-partly': [
    'warning',
    'it announces changes that it does not honour',
    'what is not honoured lives by its ttl',
    'honour what is announced, or take the promise back',
  ],
  'no-notifications': [
    'note',
    'it announces no notifications',
    'what is kept lives by its ttl, whatever changes',
    'keep ttlMs short, or announce listChanged and subscribe',
  ],
} as const satisfies Readonly<Record<string, Row>>;

export type FindingId = keyof typeof FINDINGS;

/** A finding about these. @param detail what came in place of what was due. */
export function finding(id: FindingId, where: readonly string[], detail?: string): Finding {
  const [severity, says, gateway, remedy]: Row = FINDINGS[id];
  return { id, severity, where, says: detail === undefined ? says : `${says}: ${detail}`, gateway, remedy };
}
