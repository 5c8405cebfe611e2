/**
 * Every bound in the code is named in the README, or here with a reason; each is tested at its edge, here or in the
 * file that ELSEWHERE names.
 */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createCursorCodec, MAX_CURSOR_LENGTH } from '../../src/aggregate/cursor.ts';
import { createAdmission } from '../../src/auth/admission.ts';
import { MAX_FILE_BYTES, readTextFile } from '../../src/config/files.ts';
import { formatDuration, formatSize } from '../../src/config/units.ts';
import { createCors } from '../../src/edge/cors.ts';
import { classify, MAX_ID_LENGTH, MAX_MEMBERS } from '../../src/protocol/classify.ts';
import { readHead } from '../../src/protocol/headers.ts';
import { MAX_JSON_DEPTH, wholeValue } from '../../src/protocol/json.ts';
import {
  compileTemplate,
  TEMPLATE_EXPRESSION_COUNT_MAX,
  TEMPLATE_LENGTH_MAX,
} from '../../src/routing/template.ts';
import { configOf, loadText } from '../support/config.ts';
import { mirrored, rawHeaders, rpc } from '../support/mcp.ts';

const ROOT = process.cwd();
const README = readFileSync(join(ROOT, 'README.md'), 'utf8');
const SECTION = README.slice(README.indexOf('### Bounds'), README.indexOf('## Configuration reference'));
/** Bound → default and what happens beyond it. */
const ROWS = new Map(
  [...SECTION.matchAll(/^\| (?!bound|---)([^|]+) \| ([^|]+) \| ([^|]+) \|$/gm)].map(
    ([, name, value, beyond]) => [name as string, `${value} ${beyond}`] as const,
  ),
);

/** Constants that a user can meet, and their rows. */
const NAMED: Readonly<Record<string, string>> = {
  'aggregate/cursor MAX_CURSOR_LENGTH': 'cursor of an upstream, of the gateway',
  'aggregate/cursor MAX_UPSTREAM_CURSOR_LENGTH': 'cursor of an upstream, of the gateway',
  'aggregate/discover DISCOVER_WAIT_MS': 'waiting in `server/discover`',
  'aggregate/discover FIRST_RETRY_MS': 'asking again for a discover that failed',
  'aggregate/discover LAST_RETRY_MS': 'asking again for a discover that failed',
  'aggregate/discover MAX_DISCOVER_BYTES': 'answer to a completion, to a discover',
  'aggregate/item MAX_ITEM_BYTES': 'item of a list',
  'aggregate/learn LEARN_MS': 'walking a list to find an owner, list without a ttl',
  'aggregate/learn LISTED_MS': 'walking a list to find an owner, list without a ttl',
  'retiring MAX_RETIRING': 'upstreams that a reload has replaced and that still have work under way',
  'subscriptions/subscriptions FIRST_LOOK_MS':
    'looking again for whose something is that a client listens for, behind a reload',
  'subscriptions/subscriptions LAST_LOOK_MS':
    'looking again for whose something is that a client listens for, behind a reload',
  'subscriptions/subscriptions MAX_LOOKS':
    'looking again for whose something is that a client listens for, behind a reload',
  'config/watch QUIET_MS': 'following the configuration',
  'config/watch MOST_MS': 'following the configuration',
  'config/watch LOOK_MS': 'following the configuration',
  'cli/reloader SETTLE_MS': 'following the configuration',
  'cli/reloader MAX_SETTLES': 'following the configuration',
  'aggregate/listen FILTER_CHARS': "filter of a client's listen",
  'aggregate/listen FILTER_NAME_CHARS': "filter of a client's listen",
  'aggregate/listen FILTER_TASKS': "filter of a client's listen",
  'aggregate/listen FILTER_URIS': "filter of a client's listen",
  'aggregate/listen KNOW_MS': "acknowledging a client's listen",
  'pipeline ACKNOWLEDGED_WITHIN_MS': "acknowledging a client's listen",
  'subscriptions/coalesce COALESCE_MS': 'telling of the same again',
  'subscriptions/coalesce MAX_KEYS': 'telling of the same again',
  'subscriptions/listener MAX_PENDING': 'what a client that does not read has not heard of',
  'aggregate/list FILL_MS': 'merged page',
  'aggregate/list FIRST_PAGES_AT_ONCE': 'first pages of a list',
  'aggregate/list FIRST_PAGES_MS': 'first pages of a list',
  'aggregate/page MAX_EXTRAS_BYTES': "members beside the items of an upstream's page",
  'aggregate/page MAX_PAGE_ITEMS': "page of an upstream's list",
  'aggregate/parts MAX_PAGE_BYTES': "page of an upstream's list",
  'aggregate/parts MAX_WALK_PAGES': 'pages of an upstream in one walk',
  'aggregate/read MAX_HELD_READ_BYTES': 'answer to a read that is held',
  'aggregate/tell MAX_BYTES': 'answer to a completion, to a discover',
  'aggregate/walk MERGED_PAGE_BYTES': 'merged page',
  'auth/forward FORWARDED_PRIVATE_MS': "private hit where the caller's token is forwarded",
  'edge/lane LINGER_MS': 'sending on after the answer, after a refusal of what is no HTTP',
  'edge/lane MAX_WAITING_BYTES': 'further requests on a connection whose answer is under way',
  'cache/generations MARKS_MAX': 'keys whose last answer, whose invalidation is remembered',
  'cache/inflight PATIENCE_MS': "waiting for another context's request",
  'cache/keep RECENT_MAX': 'keys whose last answer, whose invalidation is remembered',
  'cache/redis/envelope URIS_MAX_BYTES': 'URIs that a shared answer is about',
  'cache/redis/lua FIELDS_MAX': 'changes of an upstream remembered in Redis',
  'cache/redis/lua HASH_TTL_MS': 'changes of an upstream remembered in Redis',
  'cache/redis/lua ABSENT_MAX_MS': 'no replica at Redis',
  'cache/redis/connect RECONNECT_MAX_MS': 'trying Redis again',
  'cache/redis/gate PROBE_MS': 'a command of Redis',
  'cache/redis/remote BEATS_PER_POLL': 'a missed message between replicas',
  'cache/redis/remote BEAT_MS': 'a missed message between replicas',
  'cache/redis/sync LOOK_AGAIN_MS': 'a missed message between replicas',
  'cache/redis/bus ECHO_MS': 'a missed message between replicas',
  'cache/redis/bus ORIGINS_MAX': 'replicas that are known to each other',
  'cache/redis/bus SILENT_MS': 'replicas that are known to each other',
  'cache/redis/bumps BUMPED_MAX': 'fields that end together',
  'cache/redis/remote KEEP_MAX_MS': 'changes of an upstream remembered in Redis',
  'cache/remainders REMAINDERS_BYTES': 'rests of cut pages',
  'cache/remainders REMAINDER_LIVES_MS': 'rests of cut pages',
  'admin/ask GIVE_UP_MS': 'asking upstreams for the admin page',
  'admin/ask MAX_ANSWER_BYTES': 'what the admin page shows of a resource',
  'admin/ask MAX_URI_CHARS': 'what the admin page shows of an item of a list',
  'admin/catalogue MAX_DESCRIPTION_CHARS': 'what the admin page shows of an item of a list',
  'admin/catalogue MAX_NAME_CHARS': 'what the admin page shows of an item of a list',
  'admin/happenings MAX_HAPPENINGS': 'what the admin page remembers',
  'admin/reading MAX_CONTENTS': 'what the admin page shows of a resource',
  'admin/reading MAX_SHOWN': 'what the admin page shows of a resource',
  'admin/recent MAX_LATENCIES': 'what the admin page remembers',
  'admin/recent MAX_SAMPLES': 'what the admin page remembers',
  'admin/recent SAMPLES_PER_LATENCY': 'what the admin page remembers',
  'admin/recent SAMPLE_MS': 'what the admin page remembers',
  'admin/server MAX_ASKING': 'asking upstreams for the admin page',
  'admin/server MAX_BODY_BYTES': 'request on the admin port',
  'admin/server MAX_LIST_BODY_BYTES': 'request on the admin port',
  'admin/server REQUEST_TIMEOUT_MS': 'request on the admin port',
  'cli/healthcheck TIMEOUT_MS': 'waiting in `headgate healthcheck`, in `headgate purge`',
  'cli/inspect TIMEOUT_MS': 'waiting in `headgate inspect`, a list that it walks',
  'inspect/lists MAX_ITEMS': 'waiting in `headgate inspect`, a list that it walks',
  'inspect/lists MAX_LIST_BYTES': 'waiting in `headgate inspect`, a list that it walks',
  'cli/purge TIMEOUT_MS': 'waiting in `headgate healthcheck`, in `headgate purge`',
  'config/document MAX_DEPTH': 'nesting, string, secret in the configuration',
  'config/document MAX_NODES': 'configuration file',
  'config/fields MAX_TEXT': 'nesting, string, secret in the configuration',
  'config/files MAX_FILE_BYTES': 'configuration file',
  'config/mends MIN_ADMIN_TOKEN_BYTES': 'nesting, string, secret in the configuration',
  'config/mends MIN_SECRET_BYTES': 'nesting, string, secret in the configuration',
  'config/mends MAX_PREFIX_CHARS': 'nodes, number of the database, key prefix of Redis',
  'config/mends MAX_REDIS_DB': 'nodes, number of the database, key prefix of Redis',
  'config/schema-upstream MAX_ENDPOINTS': 'endpoints of an upstream, trial of one that failed',
  'config/schema-process MAX_WORDS': 'lists in the configuration',
  'config/syntax MAX_WRITTEN_DEPTH': 'nesting, string, secret in the configuration',
  'edge/body LINGER_MS': 'sending on after the answer, after a refusal of what is no HTTP',
  'edge/cors MAX_NAMES': 'names asked for in a preflight',
  'edge/drain LAST_WORDS_MS': 'drain',
  'edge/live MAX_UNSENT_BYTES': 'notifications not yet taken by a client',
  'edge/mcp-server KEEP_ALIVE_TIMEOUT_MS': 'idle connection of a client',
  'edge/raw-refusal LINGER_MS': 'sending on after the answer, after a refusal of what is no HTTP',
  'edge/shedding FEW_UNDER_WAY': 'event loop that is late',
  'edge/shedding MAX_UNDER_WAY': 'requests under way, listens aside',
  'edge/shedding WINDOW_MS': 'event loop that is late',
  'edge/heart KEEP_ALIVE_MS': 'silence on a listen',
  'observability/log MAX_NAME_CHARS': 'name in the access log, message of a failure',
  'observability/log MAX_WAITING_BYTES': 'log lines not yet taken',
  'protocol/classify MAX_ID_LENGTH': 'JSON-RPC id',
  'protocol/classify MAX_MEMBERS': 'members of a request, of its `params`, of its `_meta`',
  'protocol/classify SCAN_BYTES': 'beginning of a streamed body that is compared with the headers',
  'protocol/json MAX_JSON_DEPTH': 'nesting of JSON',
  'routing/edition CHAINS': 'editions of one list, walks of it side by side',
  'routing/ledger EDITIONS': 'editions of one list, walks of it side by side',
  'routing/ledger ID_LENGTH_MAX': 'id that is learnt',
  'routing/lessons TOLD_LENGTH_MAX': 'owners found by asking around, of one audience',
  'routing/lessons TOLD_LIMIT': 'owners found by asking around, of one audience',
  'routing/ownership CONTEXTS': 'owners learnt, for each route',
  'routing/ownership CONTEXTS_BYTES': 'owners learnt, for each route',
  'routing/ownership CONTEXTS_LIMIT': 'owners learnt, for each route',
  'routing/ownership CONTEXT_BYTES': 'owners learnt, for each route',
  'routing/ownership CONTEXT_LIMIT': 'owners learnt, for each route',
  'routing/ownership SHARED_BYTES': 'owners learnt, for each route',
  'routing/ownership SHARED_LIMIT': 'owners learnt, for each route',
  'routing/template TEMPLATE_EXPRESSION_COUNT_MAX': 'a template',
  'routing/template TEMPLATE_LENGTH_MAX': 'a template',
  'routing/template-index INDEX_TEMPLATE_COUNT_MAX': 'templates learnt, for each route',
  'routing/template-index LOOKUP_STEPS_PER_CHARACTER':
    'steps to match a URI with the templates, and those of a page',
  'routing/template-index LOOKUP_STEP_COUNT_MAX':
    'steps to match a URI with the templates, and those of a page',
  'routing/template-index PAGE_STEP_COUNT_MAX':
    'steps to match a URI with the templates, and those of a page',
  'upstream/balance TRIAL_MS': 'endpoints of an upstream, trial of one that failed',
  'upstream/call MAX_REFUSAL_BYTES': 'refusal by an upstream (4xx, 5xx)',
  'upstream/child MAX_MESSAGE_BYTES': 'message of the process of an upstream, messages that it has not read',
  'upstream/child MAX_UNREAD_BYTES': 'message of the process of an upstream, messages that it has not read',
  'upstream/child PATIENCE_MS': 'ending the process of an upstream',
  'upstream/child-log MAX_LINES_PER_SECOND': 'lines that the process of an upstream says, one of them',
  'upstream/child-log MAX_LINE_CHARS': 'lines that the process of an upstream says, one of them',
  'upstream/circuit FAILURES_TO_OPEN': 'failures before an endpoint of an upstream is left alone',
  'upstream/circuit MAX_OPEN_MS': 'failures before an endpoint of an upstream is left alone',
  'upstream/circuit OPEN_MS': 'failures before an endpoint of an upstream is left alone',
  'upstream/circuit TIMEOUTS_TO_OPEN': 'failures before an endpoint of an upstream is left alone',
  'upstream/decode MAX_CODINGS': "codings of an upstream's answer, on top of each other",
  'upstream/exchange WHOLE_BYTES': 'answer to a call that goes to the client in one piece',
  'upstream/failure MAX_DETAIL_CHARS': 'name in the access log, message of a failure',
  'upstream/held HELD_READS_BYTES': 'answers to reads that are still coming, held together',
  'upstream/held SMALL_READ_BYTES': 'answers to reads that are still coming, held together',
  'upstream/listen MAX_STREAMS': 'URIs listened for at an upstream',
  'protocol/listen-filter LISTENED_URIS': 'URIs listened for at an upstream',
  'upstream/listen MAX_URI_CHARS': 'URIs listened for at an upstream',
  'upstream/listen STREAM_CHARS': 'URIs listened for at an upstream',
  'upstream/listen STREAM_NAMES': 'URIs listened for at an upstream',
  'legacy/conversation MAX_ROUNDS':
    'questions of a server in one call of an older client, time to answer one',
  'legacy/questions ANSWER_MS': 'questions of a server in one call of an older client, time to answer one',
  'legacy/conversation WHOLE_BYTES': 'answer to a call of an older client',
  'legacy/conversation AGAIN_BYTES': 'answer to a call of an older client',
  'legacy/param-headers MAX_PAGES': 'pages looked through for a tool that wants headers',
  'legacy/hello MAX_NAME_CHARS': "session id, and a client's name in it",
  'legacy/tickets MAX_ID_CHARS': "session id, and a client's name in it",
  'upstream/askers GHOST_MS': 'calls given up that an older server may still ask for',
  'upstream/askers MAX_GHOSTS': 'calls given up that an older server may still ask for',
  'upstream/legacy-aside HEAR_MS': 'hearing what an older server asks on the stream of its session',
  'upstream/legacy-aside LINGER_MS': 'hearing what an older server asks on the stream of its session',
  'legacy/session MAX_SUBSCRIPTIONS': 'resources that a session is subscribed to, questions open in it',
  'legacy/session MAX_ASKED': 'resources that a session is subscribed to, questions open in it',
  'legacy/sessions MAX_KEPT': 'sessions of older clients for which something is kept',
  'legacy/sessions IDLE_MS': 'sessions of older clients for which something is kept',
  'legacy/sessions MAX_OF_HOLDER': 'sessions of older clients for which something is kept',
  'legacy/ended MAX_CHUNKS': 'ended sessions that are remembered',
  'legacy/ended CHUNK_SERIALS': 'ended sessions that are remembered',
  'legacy/listens MAX_LISTENS': 'listens held for sessions of older clients',
  'legacy/listens MAX_LISTENS_OF_HOLDER': 'listens held for sessions of older clients',
  'legacy/session RECENT_MS': 'what was told on a stream that has gone, told again on the next',
  'legacy/session MAX_RECENT': 'what was told on a stream that has gone, told again on the next',
  'legacy/request MAX_NAME_HEADER_CHARS': 'name in a header made for an older client',
  'upstream/legacy-dialogue MAX_OPEN': "older servers that wait for a client's answer",
  'upstream/legacy-parked MAX_BYTES': "older servers that wait for a client's answer",
  'upstream/legacy-parked PARKED_MS': "older servers that wait for a client's answer",
  'upstream/legacy MAX_CALL_BYTES': 'call that is translated, and its answer',
  'upstream/legacy MAX_UNTAKEN_BYTES': 'what an older server says before its answer',
  'upstream/legacy-session MAX_ANSWERING': 'what an older server says before its answer',
  'upstream/legacy-sessions IDLE_MS': 'sessions with a server of an older era',
  'upstream/legacy-sessions MAX_SESSIONS': 'sessions with a server of an older era',
  'upstream/upstream DOUBT_MS': 'finding out which era a server is of',
  'upstream/upstream JUDGE_MS': 'finding out which era a server is of',
  'upstream/stdio MAX_UNDER_WAY': 'requests to a process under way',
  'upstream/unheard MAX_UNHEARD': 'notifications of a process not yet taken',
  'upstream/stdio START_MS': 'starting a process',
  'upstream/listen-stream MAX_EVENT_BYTES': "event of an upstream's listen",
  'upstream/listen-times ACK_MS': 'waiting for an upstream to acknowledge a listen',
  'upstream/listen-times FIRST_PAUSE_MS': 'listening to an upstream again',
  'upstream/listen-times LAST_PAUSE_MS': 'listening to an upstream again',
  'upstream/listen-times REFUSED_MS': 'listening to an upstream again',
  'upstream/listen-times STEADY_MS': 'listening to an upstream again',
  'upstream/pool KEEP_ALIVE_MARGIN_MS': 'idle connection to an upstream',
  'upstream/pool KEEP_ALIVE_MS': 'idle connection to an upstream',
  'upstream/pool MAX_KEEP_ALIVE_MS': 'idle connection to an upstream',
  'upstream/pool MAX_RESPONSE_HEADER_BYTES': "headers of an upstream's answer",
  'upstream/pool WAITING_READS_PER_CONNECTION': 'connections to an upstream',
  'upstream/relay MAX_HELD_EVENT_BYTES': 'unfinished event of a streamed answer',
  'upstream/supervisor FIRST_PAUSE_MS': 'starting the process of an upstream again',
  'upstream/supervisor LAST_PAUSE_MS': 'starting the process of an upstream again',
  'upstream/supervisor STEADY_MS': 'starting the process of an upstream again',
  'upstream/turns MAX_REPEATS': 'requests sent again after a broken connection',
};

const SIZE_OF_MEMORY = 'what something is taken to cost, not how much of it there may be';
const INNER = 'only the pace or the shape of work: no request fails or is changed by it';
/** Numbers that nobody meets, and why. */
const INSPECTED = 'what `headgate inspect` looks at and shows: no request of anybody passes there';
const UNNAMED: Readonly<Record<string, string>> = {
  'reload TOLD_PROBLEMS': 'how many problems one line of the log tells of',
  'aggregate/listen CARRIED_META_BYTES':
    'what is kept of the `_meta` of a listen: beyond it the gateway’s own stands in',
  'config/watch MAX_LINKS': 'as many links as systems follow',
  'retiring LOOK_MS': INNER,
  'subscriptions/subscriptions PLANS_AT_ONCE': INNER,
  'config/checks LONG_MS': 'from where on a time to live gets a warning',
  'config/checks-reach EFFORT_STEPS': 'work for warnings: what is beyond it gets none',
  'config/covers QUICK_STEPS': INNER,
  'config/covers SIMPLE_CHARS': 'templates that are longer get no warning',
  'inspect/asker LOOKED_AT_BYTES': INSPECTED,
  'inspect/checks MAX_BYTES': INSPECTED,
  'inspect/hello MAX_DISCOVER_BYTES': 'the same as aggregate/discover MAX_DISCOVER_BYTES',
  'inspect/hello REPEATS': INSPECTED,
  'inspect/judge SLOW_MS': INSPECTED,
  'inspect/judge DAY_MS': INSPECTED,
  'inspect/judge SHOWN': INSPECTED,
  'inspect/lists SHOWN': INSPECTED,
  'inspect/lists MAX_COMPARISONS': INSPECTED,
  'inspect/probe SAMPLE': INSPECTED,
  'inspect/probe MIN_SECRET_CHARS': INSPECTED,
  'inspect/report REPORT_VERSION': INSPECTED,
  'inspect/report WIDTH': INSPECTED,
  'inspect/report PLACES': INSPECTED,
  'inspect/report FIRST_CELL': INSPECTED,
  'inspect/words SHOWN_CHARS': INSPECTED,
  'inspect/words HOUR_MS': INSPECTED,
  'aggregate/learn MAX_WALKS': 'within the time of walking a list',
  'legacy/clients MAX_SHOWN_CHARS': 'how much of a method is shown in an error',
  'legacy/sessions MAX_TRIES': INNER,
  'upstream/legacy-dialogue GATHER_MS': INNER,
  'legacy/sessions SWEEP_MS': INNER,
  'legacy/tickets SEAL_BYTES': 'a part of the format of session ids',
  'upstream/legacy-session HELLO_MS': 'the same as the answer to a read',
  'upstream/legacy-session LEVEL_MS': 'how long a level is waited for: the call goes on without it',
  'upstream/legacy-http TELL_MS': 'how long a notification may take: nobody waits for it',
  'upstream/legacy-session TELL_MS': 'how long a notification may take: nobody waits for it',
  'upstream/upstream MAX_DISCOVER_BYTES': 'the same as aggregate/discover MAX_DISCOVER_BYTES',
  'upstream/legacy-http END_MS': 'how long the end of a session is waited for, at shutdown',
  'upstream/legacy-http MAX_EVENT_BYTES':
    'the same as upstream/listen-stream MAX_EVENT_BYTES, of an older era',
  'upstream/legacy-http OPEN_MS': 'the same as upstream/listen-times ACK_MS, of an older era',
  'upstream/legacy-listen AT_ONCE': INNER,
  'upstream/legacy-subscribe MAX_ANSWER_BYTES': 'no answer to a subscription is longer',
  'upstream/legacy-offer MAX_URIS': 'the same as protocol/listen-filter LISTENED_URIS, of an older era',
  'upstream/legacy-session MAX_HELLO_BYTES':
    'the same as aggregate/discover MAX_DISCOVER_BYTES, of an older era',
  'admin/ask MAX_DATA_CHARS': 'what the admin page shows of an error is cut',
  'admin/ask MAX_MESSAGE_CHARS': 'what the admin page shows of an error is cut',
  'admin/catalogue MAX_INCOMPLETE': 'no route has more upstreams',
  'admin/catalogue TEMPLATES_MS': INNER,
  'admin/page/cache-panel SLOTS': 'a part of the drawing',
  'admin/page/chart HEIGHT': 'a part of the drawing',
  'admin/page/chart WIDTH': 'a part of the drawing',
  'admin/page/client WAIT_MS': 'how long the page waits before it says that the gateway does not answer',
  'admin/page/items MAX_ROWS':
    'how many are drawn: the page says how many are not, and its filter finds them',
  'admin/page/live EVERY_MS': INNER,
  'admin/page/saying SHOWN_MS': 'how long the page says something',
  'admin/page/text MAX_ODD': 'beyond it what is odd is shown, but not which it is',
  'admin/reading HEX_BYTES': 'how much the admin page shows of what is neither text nor image',
  'admin/reading MAX_TYPE_CHARS': 'what the admin page shows of a media type is cut',
  'admin/state MAX_ABOUT_CHARS': 'what the admin page shows of an upstream in a line is cut',
  'admin/summary MAX_ABOUT': 'what the start-up summary says of one upstream is cut',
  'aggregate/call MAX_REFUSAL_BYTES': 'the same as upstream/call MAX_REFUSAL_BYTES, on the other side',
  'aggregate/cursor MAC_BYTES': 'a part of the format of cursors',
  'aggregate/cursor VERSION': 'a part of the format of cursors',
  'aggregate/page ITEMS_AT_ONCE': INNER,
  'aggregate/page ITEM_BYTES': SIZE_OF_MEMORY,
  'aggregate/parts BAD_ITEMS_NAMED': 'how many of the counted are also named in one line of the log',
  'aggregate/read ENVELOPE_BYTES': 'room beside what is kept',
  'cli/purge MAX_ANSWER_BYTES': 'no answer of an admin port is longer',
  'cache/memory ACCOUNT_OVERHEAD_BYTES': SIZE_OF_MEMORY,
  'cache/memory ENTRY_OVERHEAD_BYTES': SIZE_OF_MEMORY,
  'cache/keep UNWATCHED_MS': 'no bound: how long what was read unwatched is used',
  'cache/memory SWEEP_COUNT': INNER,
  'cache/memory URI_OVERHEAD_BYTES': SIZE_OF_MEMORY,
  'cache/uris DIGEST_LENGTH': 'a part of the names of resources',
  'cache/uris MAX_CUTS': 'beyond it an update ends more than it must',
  'cache/uris MAX_NAMED': 'beyond it an update ends more than it must',
  'cache/redis/envelope FIELD_MAX_BYTES': 'a part of the format: no longer field is made',
  'cache/redis/envelope HEAD_BYTES': 'a part of the format of shared entries',
  'cache/redis/envelope HINTS_MAX_BYTES': 'room beside the tail: no longer hints are made',
  'cache/redis/seal KEY_BYTES': 'a part of the format of shared entries',
  'cache/redis/seal KEY_ID_BYTES': 'a part of the format of shared entries',
  'cache/redis/seal NONCE_BYTES': 'a part of the format of shared entries',
  'cache/redis/seal TAG_BYTES': 'a part of the format of shared entries',
  'cache/redis/lua TOKEN_MAX': 'a time that is reached in 2255',
  'cache/redis/connect RECONNECT_MIN_MS': INNER,
  'cache/redis/connect DISCONNECT_MS': INNER,
  'cache/redis/connect REDIRECTIONS_MAX': 'a Cluster that moves a slot needs one',
  'cache/redis/ledger LINKS_MAX': 'messages that overtook one that is missed: the next look ends the wait',
  'cache/redis/ledger MARGIN_MS': 'how far two good clocks may differ',
  'cache/redis/ledger YOUNG_MS': 'what counts as the start of a replica',
  'cache/redis/sync SYNC_MS': INNER,
  'cache/redis/bumps RETRY_MIN_MS': INNER,
  'cache/redis/bumps RETRY_MAX_MS': INNER,
  'cache/redis/remote ORIGIN_BYTES': 'a name that no other replica has',
  'cache/remainders OVERHEAD_BYTES': SIZE_OF_MEMORY,
  'config/draft MAX_PRUNING_ROUNDS': 'how far problems are looked for behind the first ones',
  'config/nearest MAX_DISTANCE': 'how alike a key must be to be proposed',
  'edge/gather MIN_BUFFER_BYTES': INNER,
  'edge/half-close FIRST_LOOK_MS': INNER,
  'edge/half-close MAX_LOOK_MS': INNER,
  'edge/drain LISTEN_ENDS_MS': 'the same as the drain, of those who do not read',
  'edge/live CLIENT_CLOSED_REQUEST': 'a status in the log',
  'edge/mcp-server TCP_KEEP_ALIVE_MS':
    "when the kernel begins to ask whether a silent peer is there; the kernel's own count ends it",
  'edge/respond ONE_STRING_BYTES': INNER,
  'edge/shedding LATE_MS': 'what counts as a late turn at all',
  'edge/shedding LATE_TURNS': 'a single late turn is no lateness of the loop',
  'edge/shedding TICK_MS': INNER,
  'edge/sweeper MAX_TICK_MS': INNER,
  'edge/sweeper MIN_TICK_MS': INNER,
  'auth/forward REMEMBERED_TOKENS': INNER,
  'protocol/classify FEW_MEMBERS': INNER,
  'protocol/repeats REPEATED_BYTES': INNER,
  'protocol/raw-headers REMEMBERED_ORDERS': INNER,
  'edge/lane-shape REMEMBERED_SHAPES': INNER,
  'protocol/repeats REPEATED_NAMES': INNER,
  'protocol/repeats REPEATED_WORDINGS': INNER,
  'observability/lines MAX_CAUSES': 'how far the causes of an error are followed in the log',
  'observability/log BATCH_BYTES': INNER,
  'observability/log BATCH_MS': INNER,
  'protocol/json SHORT_BYTES': INNER,
  'protocol/json-watch MAX_ID_BYTES': 'the id of a refusal: the same 1 KiB as of a request',
  'protocol/json-watch MAX_KEY_BYTES': 'no longer key is looked for',
  'protocol/result-flow MAX_OTHER_MEMBERS': 'members of a JSON-RPC answer beside three: no server writes one',
  'protocol/result-flow MAX_TYPE_BYTES': 'no longer spelling of `complete` exists',
  'protocol/sse NAME_BYTES': 'no longer field name is looked for',
  'protocol/sse TYPE_CHARS': 'no longer event type is looked for',
  'routing/ledger CHARACTER_BYTES': SIZE_OF_MEMORY,
  'routing/ledger EDITION_BYTES': SIZE_OF_MEMORY,
  'routing/ledger ID_BYTES': SIZE_OF_MEMORY,
  'routing/ledger TEMPLATE_CHARACTER_BYTES': SIZE_OF_MEMORY,
  'routing/lessons TOLD_BYTES': SIZE_OF_MEMORY,
  'routing/template-atoms CONTINUES': 'a flag',
  'routing/template-atoms RESERVED': 'a flag',
  'routing/template-atoms UNRESERVED': 'a flag',
  'routing/template-index INDEX_TEXT_LENGTH_MEAN':
    'the templates of an owner in characters, see `templates learnt`',
  'routing/template-machine TRACKED_NAME_COUNT':
    'how strict the matching of a name that stands twice in one expression is',
  'upstream/child LAST_WORDS_MS': INNER,
  'upstream/child-log LOOKED_AT_BYTES': INNER,
  'upstream/child-log MAX_JUNK_CHARS': 'how much is shown of what is counted',
  'upstream/child-log MIN_SECRET_CHARS': 'a shorter value is no secret',
  'upstream/child-log SECOND_MS': 'a second',
  'upstream/decode CHUNK_BYTES': INNER,
  'subscriptions/watch GATHER_MS': INNER,
  'subscriptions/watch LINGER_MS': INNER,
  'upstream/exchange HIGH_WATER_BYTES': INNER,
  'upstream/exchange MAX_DISCARDED_BYTES': INNER,
  'upstream/exchange MAX_DISCARD_MS': INNER,
  'upstream/exchange MAX_TIMER_MS': 'what a timer of Node can hold',
  'upstream/listen-held MAX_TOLD': 'how many events of two streams side by side are told apart',
  'upstream/listen-stream ECHO_FACTOR': 'room for the spelling of an acknowledgment',
  'upstream/listen-times DRAIN_MS': INNER,
  'upstream/listen-times GATHER_MS': INNER,
  'upstream/listen-times SHRINK_MS': INNER,
  'upstream/message FRAMING_BYTES': 'room beside the message',
  'upstream/pool FULL_RETRY_AFTER_SECONDS': 'a value that is sent',
  'upstream/pool TCP_KEEP_ALIVE_MS':
    "when the kernel begins to ask whether a silent peer is there; the kernel's own count ends it",
  'upstream/process-group KILLED_MS': INNER,
  'upstream/process-group LOOK_MS': INNER,
  'upstream/supervisor MAX_DOUBLINGS': INNER,
  'upstream/http HANGING_MS': 'when a deadline counts as missed, for `1 missed list deadline`',
};

/** Tested at their edges in other files. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'waiting in `headgate inspect`, a list that it walks': 'integration/inspect',
  'request body that is read': 'integration/edge',
  'request body that is streamed': 'integration/edge.bodies',
  'beginning of a streamed body that is compared with the headers': 'integration/edge.bodies',
  'request headers': 'integration/edge',
  'further requests on a connection whose answer is under way': 'integration/lane',
  'headers and read body must have come': 'integration/edge.bodies',
  'pause in a body': 'integration/edge.bodies',
  'sending on after the answer, after a refusal of what is no HTTP': 'integration/edge.bodies',
  drain: 'integration/edge.drain',
  'following the configuration': 'integration/reload',
  'upstreams that a reload has replaced and that still have work under way': 'unit/retiring',
  'looking again for whose something is that a client listens for, behind a reload':
    'unit/subscriptions.listener',
  'connecting to an upstream': 'integration/faults',
  'answer to a read or a list': 'integration/faults',
  'a streamed call, all of it': 'unit/upstream.stream',
  'silence in a streamed answer': 'unit/upstream.stream',
  'connections to an upstream': 'unit/upstream.upstream',
  "headers of an upstream's answer": 'unit/upstream.read',
  "codings of an upstream's answer, on top of each other": 'unit/upstream.read',
  'refusal by an upstream (4xx, 5xx)': 'unit/upstream.read',
  'requests sent again after a broken connection': 'unit/upstream.read',
  'answer to a call that goes to the client in one piece': 'unit/upstream.stream',
  'unfinished event of a streamed answer': 'unit/upstream.relay',
  'answer to a read that is held': 'integration/large-reads',
  'answers to reads that are still coming, held together': 'unit/upstream.large',
  "page of an upstream's list": 'unit/aggregate.list',
  'item of a list': 'unit/aggregate.list',
  'failures before an endpoint of an upstream is left alone': 'unit/upstream.circuit',
  'waiting for an upstream to acknowledge a listen': 'unit/upstream.listen',
  'listening to an upstream again': 'unit/upstream.listen',
  "event of an upstream's listen": 'unit/upstream.listen',
  'URIs listened for at an upstream': 'unit/upstream.listen-update',
  'message of the process of an upstream, messages that it has not read': 'unit/upstream.child',
  'lines that the process of an upstream says, one of them': 'unit/upstream.child',
  'ending the process of an upstream': 'unit/upstream.child',
  'starting the process of an upstream again': 'unit/upstream.supervisor',
  'merged page': 'unit/aggregate.list',
  'first pages of a list': 'unit/aggregate.list',
  'pages of an upstream in one walk': 'integration/faults',
  'rests of cut pages': 'unit/cache.remainders',
  'waiting in `server/discover`': 'unit/aggregate.discover',
  'asking again for a discover that failed': 'unit/aggregate.discover',
  'sessions of older clients for which something is kept': 'unit/legacy.sessions',
  'ended sessions that are remembered': 'unit/legacy.sessions',
  'listens held for sessions of older clients': 'unit/legacy.clients',
  'what was told on a stream that has gone, told again on the next': 'unit/legacy.clients',
  'name in a header made for an older client': 'unit/legacy.clients',
  "session id, and a client's name in it": 'unit/legacy.sessions',
  'hearing what an older server asks on the stream of its session': 'unit/upstream.legacy-dialogue',
  'calls given up that an older server may still ask for': 'unit/upstream.legacy-dialogue',
  'resources that a session is subscribed to, questions open in it': 'unit/legacy.sessions',
  'questions of a server in one call of an older client, time to answer one': 'unit/legacy.clients',
  'answer to a call of an older client': 'unit/legacy.clients',
  'pages looked through for a tool that wants headers': 'unit/legacy.clients',
  "older servers that wait for a client's answer": 'unit/upstream.legacy-dialogue',
  'owners learnt, for each route': 'unit/routing.ownership',
  'id that is learnt': 'unit/routing.ownership',
  'owners found by asking around, of one audience': 'unit/routing.ownership',
  'editions of one list, walks of it side by side': 'unit/routing.ownership',
  'templates learnt, for each route': 'unit/routing.template-index',
  'steps to match a URI with the templates, and those of a page': 'unit/routing.template-index',
  cache: 'unit/cache.memory',
  entry: 'unit/cache.memory',
  "waiting for another context's request": 'unit/cache.inflight',
  'notifications not yet taken by a client': 'integration/edge.replies',
  'log lines not yet taken': 'unit/observability.log',
  'name in the access log, message of a failure': 'unit/observability.log',
  'requests under way, listens aside': 'unit/edge.shedding',
  'event loop that is late': 'unit/edge.shedding',
  "members beside the items of an upstream's page": 'unit/aggregate.walk',
  'keys whose last answer, whose invalidation is remembered': 'unit/cache.order',
  'silence on a listen': 'integration/edge.replies',
  "filter of a client's listen": 'integration/subscriptions',
  "acknowledging a client's listen": 'integration/subscriptions',
  'what a client that does not read has not heard of': 'unit/subscriptions.listener',
  'telling of the same again': 'unit/subscriptions.listener',
  'request on the admin port': 'integration/admin',
  'asking upstreams for the admin page': 'integration/admin',
  'what the admin page shows of a resource': 'integration/admin.api',
  'what the admin page shows of an item of a list': 'integration/admin.api',
  'what the admin page remembers': 'unit/admin.recent',
  'URIs that a shared answer is about': 'unit/cache.envelope',
  'fields that end together': 'integration/redis.remote',
  'a missed message between replicas': 'integration/redis.remote',
  'a command of Redis': 'integration/redis.faults',
  'no replica at Redis': 'integration/redis.scripts',
  'changes of an upstream remembered in Redis': 'integration/redis.scripts',
};

/** Tested nowhere at their edge, and why. */
const UNTESTED: Readonly<Record<string, string>> = {
  'what an older server says before its answer': 'counts: unit/upstream.legacy-sessions',
  'finding out which era a server is of': 'only time; the decision: unit/upstream.era',
  'sessions with a server of an older era': 'an LRU of sessions, see unit/protocol.bounded-map',
  'call that is translated, and its answer': 'the bound of a read, with another number: unit/upstream.read',
  'requests to a process under way': 'a count',
  'starting a process': 'seconds of waiting; the pause itself: unit/upstream.supervisor',
  'notifications of a process not yet taken': 'as a stream that broke: unit/upstream.legacy',
  'idle connection of a client':
    'over a minute of waiting; the value is announced in Keep-Alive, which integration/edge looks at',
  'idle connection to an upstream': "undici's own, see its tests",
  'answer to a completion, to a discover': 'the bound of a read, with another number: unit/upstream.read',
  'walking a list to find an owner, list without a ttl': 'seconds of waiting',
  "private hit where the caller's token is forwarded": 'a minute of waiting',
  'waiting in `headgate healthcheck`, in `headgate purge`': 'only time',
  'trying Redis again': 'only time',
  'replicas that are known to each other': 'nothing depends on it: polls find what is missed',
};

/** Every constant in src/ whose value is a number, as `room/file NAME`. */
function constants(): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const path of readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })) {
    if (!path.endsWith('.ts')) continue;
    const text = readFileSync(join(ROOT, 'src', path), 'utf8');
    for (const [, name, value] of text.matchAll(
      /^(?:export )?const ([A-Z][A-Z0-9_]*)(?:: number)? = (\d[\d_ *<+-]*);$/gm,
    )) {
      found.set(`${path.slice(0, -'.ts'.length)} ${name}`, amountOf(value as string));
    }
  }
  return found;
}

/** Of `64 * 1024`, `16 << 20`, `2 ** 14`, `2 ** 31 - 1`. */
function amountOf(expression: string): number {
  const [power = '', ...minus] = expression.replaceAll('_', '').split(' - ');
  const base = power.includes('**')
    ? power
        .split('**')
        .map(Number)
        .reduce((all, exponent) => all ** exponent)
    : power.includes('<<')
      ? power
          .split('<<')
          .map(Number)
          .reduce((all, bits) => all * 2 ** bits)
      : power
          .split('*')
          .map(Number)
          .reduce((all, factor) => all * factor, 1);
  return minus.map(Number).reduce((all, less) => all - less, base);
}

/** How the README may write it. */
function spellings(value: number): readonly string[] {
  return [
    formatSize(value),
    formatDuration(value),
    `${value / 1000}s`,
    ...(value % 1024 === 0 ? [`${value / 1024}KiB`] : []),
    value.toLocaleString('en'),
    String(value),
  ].map((text) => text.replaceAll(' ', ''));
}

describe('the bounds in the code', () => {
  const all = constants();

  test('are each named in the README, or here with a reason', () => {
    assert.ok(all.size > 100);
    const unknown = [...all.keys()].filter(
      (name) => NAMED[name] === undefined && UNNAMED[name] === undefined,
    );
    assert.deepEqual(unknown, [], 'add a row to "Bounds" in the README and to NAMED, or a reason to UNNAMED');
  });

  test('are still there, and named once', () => {
    const gone = [...Object.keys(NAMED), ...Object.keys(UNNAMED)].filter((name) => !all.has(name));
    assert.deepEqual(gone, []);
    assert.deepEqual(
      Object.keys(NAMED).filter((name) => UNNAMED[name] !== undefined),
      [],
    );
    const names = [...SECTION.matchAll(/^\| ([^|]+) \|/gm)].map(([, name]) => name);
    assert.equal(new Set(names).size, names.length, 'a row twice');
  });

  for (const [name, row] of Object.entries(NAMED)) {
    test(`${name} stands in its row as it is`, () => {
      const text = ROWS.get(row) ?? assert.fail(`no row "${row}"`);
      // "1 missed" and the like count from the text; a number is not found inside a larger one.
      const words = text.replaceAll(/(\d) (?=KiB|MiB|GiB|ms|s\b|m\b|h\b)/g, '$1').split(/[\s;()]+/);
      const written = words.map((word) => word.replace(/[,.]+$/, ''));
      const ways = spellings(all.get(name) ?? Number.NaN);
      // What is allowed once more is written "1"; what may be said in words is said in words.
      assert.ok(
        ways.some((way) => written.includes(way)),
        `${ways.join(' or ')} in: ${text}`,
      );
    });
  }

  test('are each tested at their edge, or it is said why not', () => {
    const here = new Set(Object.keys(HERE));
    for (const row of ROWS.keys()) {
      const places = [here.has(row), row in ELSEWHERE, row in UNTESTED].filter(Boolean).length;
      assert.equal(places, 1, row);
    }
    for (const row of [...here, ...Object.keys(ELSEWHERE), ...Object.keys(UNTESTED)])
      assert.ok(ROWS.has(row), row);
    for (const file of Object.values(ELSEWHERE))
      assert.ok(existsSync(join(ROOT, 'test', `${file}.test.ts`)), file);
  });
});

/** The code of a refusal; undefined where a request passes. */
function judged(change: (request: ReturnType<typeof rpc>) => unknown, id?: string): number | undefined {
  const text = JSON.stringify(change(rpc('server/discover')));
  const bytes = Buffer.from(id === undefined ? text : text.replace('"id":7', `"id":${id}`));
  const message = classify(readHead(rawHeaders(mirrored('server/discover'))), { kind: 'whole', bytes });
  return message.kind === 'refused' ? message.refusal.code : undefined;
}

const crowd = (count: number): Record<string, number> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`key${i}`, i]));

/** What is wrong with a configuration; nothing where it loads. */
function problemsOf(text: string): readonly string[] {
  const result = loadText(text);
  return result.kind === 'ok' ? [] : result.problems.map(({ message }) => message);
}

interface Parts {
  readonly top?: string;
  readonly upstream?: string;
  readonly route?: string;
  readonly routes?: string;
}

const configured = ({ top = '', upstream = 'url: http://a/', route = '', routes = '' }: Parts): string =>
  `version: 1\n${top}\nupstreams: { docs: { ${upstream} } }\nroutes:\n  - { path: /mcp, upstreams: [docs]${route} }\n${routes}`;

const times = (count: number, make: (i: number) => string, by = ', '): string =>
  Array.from({ length: count }, (_, i) => make(i)).join(by);

/** Row → at the bound it passes, one beyond it does not. */
const HERE: Readonly<Record<string, () => void>> = {
  'JSON-RPC id': () => {
    assert.equal(
      judged((request) => request, `"${'x'.repeat(MAX_ID_LENGTH - 2)}"`),
      undefined,
    );
    assert.equal(
      judged((request) => request, `"${'x'.repeat(MAX_ID_LENGTH - 1)}"`),
      -32600,
    );
  },
  'members of a request, of its `params`, of its `_meta`': () => {
    const { params } = rpc('server/discover') as { params: { _meta: Record<string, unknown> } };
    const top = (count: number) => judged((request) => ({ ...request, ...crowd(count - 4) }));
    const inner = (count: number) =>
      judged((request) => ({ ...request, params: { ...params, ...crowd(count - 1) } }));
    const meta = (count: number) =>
      judged((request) => ({
        ...request,
        params: { _meta: { ...params._meta, ...crowd(count - Object.keys(params._meta).length) } },
      }));
    assert.deepEqual(
      [top, inner, meta].map((level) => level(MAX_MEMBERS)),
      [undefined, undefined, undefined],
    );
    assert.deepEqual(
      [top, inner, meta].map((level) => level(MAX_MEMBERS + 1)),
      [-32600, -32602, -32602],
    );
  },
  'nesting of JSON': () => {
    const nested = (depth: number) => wholeValue(Buffer.from('['.repeat(depth) + ']'.repeat(depth)));
    assert.notEqual(nested(MAX_JSON_DEPTH), undefined);
    assert.equal(nested(MAX_JSON_DEPTH + 1), undefined);
  },
  'names asked for in a preflight': () => {
    const { listen, upstreams, cache } = configOf(configured({}));
    const cors = createCors({ upstreams, cache }, createAdmission(listen));
    const allowed = (before: number) =>
      cors.preflight('http://localhost', `${'x,'.repeat(before)}mcp-method`).includes('mcp-method');
    assert.deepEqual([allowed(255), allowed(256)], [true, false]);
  },
  'cursor of an upstream, of the gateway': () => {
    const codec = createCursorCodec('route', 1, []);
    assert.equal(codec.decode('A'.repeat(MAX_CURSOR_LENGTH + 1), 'resources/list').kind, 'invalid');
    assert.equal(codec.decode('A'.repeat(MAX_CURSOR_LENGTH), 'resources/list').kind, 'invalid');
  },
  'a template': () => {
    const kind = (text: string) => compileTemplate(text).kind;
    assert.equal(kind(`a:${'x'.repeat(TEMPLATE_LENGTH_MAX - 2)}`), 'template');
    assert.equal(kind(`a:${'x'.repeat(TEMPLATE_LENGTH_MAX - 1)}`), 'invalid');
    const expressions = (count: number) => `a:${times(count, (i) => `/{x${i}}`, '')}`;
    assert.equal(kind(expressions(TEMPLATE_EXPRESSION_COUNT_MAX)), 'template');
    assert.equal(kind(expressions(TEMPLATE_EXPRESSION_COUNT_MAX + 1)), 'invalid');
  },
  'configuration file': () => {
    assert.throws(() => readTextFile('/dev/zero'), /larger than 1 MiB/);
    assert.equal(MAX_FILE_BYTES, 1 << 20);
    const routes = (count: number) =>
      problemsOf(
        configured({ routes: times(count - 1, (i) => `  - { path: /r${i}, upstreams: [docs] }`, '\n') }),
      );
    assert.deepEqual(routes(1000), []);
    assert.match(routes(1001).join(), /at most 1000 routes/);
    const rules = (count: number) =>
      problemsOf(
        `version: 1\nupstreams: { docs: { url: http://a/ } }\nroutes:\n  - path: /mcp\n    upstreams: [docs]\n    rules:\n${times(count, () => '      - { match: { method: tools/call }, upstream: docs }', '\n')}\n`,
      );
    assert.deepEqual(rules(100), []);
    assert.match(rules(10_001).join(), /at most 10000 rules/);
    const aliases = `x: &a [${times(600, () => '1')}]\ny: [${times(600, () => '*a')}]\n`;
    assert.notDeepEqual(problemsOf(configured({ top: aliases })), []);
  },
  'nesting, string, secret in the configuration': () => {
    const text = (length: number) =>
      problemsOf(configured({ upstream: `url: "http://a/${'x'.repeat(length - 9)}"` }));
    assert.deepEqual(text(8_192), []);
    assert.match(text(8_193).join(), /at most 8192 characters/);
    const secret = (length: number) => problemsOf(configured({ top: `secrets: ["${'s'.repeat(length)}"]` }));
    assert.deepEqual(secret(32), []);
    assert.notDeepEqual(secret(31), []);
    const token = (length: number) =>
      problemsOf(configured({ top: `admin: { token: "${'t'.repeat(length)}" }` }));
    assert.deepEqual(token(16), []);
    assert.match(token(15).join(), /at least 16 bytes/);
    const nested = (depth: number) =>
      problemsOf(configured({ top: `log: ${'['.repeat(depth)}${']'.repeat(depth)}` }));
    assert.match(nested(101).join(), /nest|deep/i);
  },
  'nodes, number of the database, key prefix of Redis': () => {
    const redis = (rest: string) => problemsOf(configured({ top: `cache: { redis: { ${rest} } }` }));
    const nodes = (count: number) =>
      redis(`cluster: { nodes: [${times(count, (i) => `"redis-${i}:6379"`)}] }`);
    assert.deepEqual(nodes(64), []);
    assert.match(nodes(65).join(), /at most 64 entries/);
    assert.deepEqual(redis('url: "redis://redis/65535"'), []);
    assert.match(redis('url: "redis://redis/65536"').join(), /number of the database/);
    const sentinel = (db: number) => redis(`sentinel: { name: a, nodes: ["a:1"], db: ${db} }`);
    assert.deepEqual(sentinel(65_535), []);
    assert.notDeepEqual(sentinel(65_536), []);
    const prefix = (length: number) => redis(`url: "redis://redis", keyPrefix: "${'x'.repeat(length)}"`);
    assert.deepEqual(prefix(64), []);
    assert.match(prefix(65).join(), /at most 64 characters/);
  },
  'lists in the configuration': () => {
    const list = (count: number, parts: (items: string) => Parts, item: (i: number) => string) =>
      problemsOf(configured(parts(times(count, item)))).filter((message) =>
        /at most \d+ entries/.test(message),
      ).length;
    const cases: readonly [number, (items: string) => Parts, (i: number) => string][] = [
      [16, (items) => ({ top: `secrets: [${items}]` }), (i) => `"${String(i).padStart(32, 's')}"`],
      [
        100,
        (items) => ({ top: `listen: { address: 127.0.0.1:8080, hosts: [${items}] }` }),
        (i) => `h${i}.example`,
      ],
      [
        100,
        (items) => ({ top: `listen: { address: 127.0.0.1:8080, origins: [${items}] }` }),
        (i) => `"http://h${i}.example"`,
      ],
      [
        100,
        (items) => ({ top: `listen: { address: 127.0.0.1:8080, trustedProxies: [${items}] }` }),
        (i) => `10.0.0.${i}`,
      ],
      [10_000, (items) => ({ upstream: `url: http://a/, tools: [${items}]` }), (i) => `t${i}`],
      [64, (items) => ({ upstream: `url: http://a/, forwardHeaders: [${items}]` }), (i) => `x-h${i}`],
      [256, (items) => ({ upstream: `command: npx, args: [${items}]` }), () => '-v'],
      [256, (items) => ({ upstream: `command: npx, env: { ${items} }` }), (i) => `A${i}: b`],
      [64, (items) => ({ top: `cache: { partition: { headers: [${items}] } }` }), (i) => `x-h${i}`],
    ];
    for (const [most, parts, item] of cases) {
      assert.deepEqual(
        [list(most, parts, item), list(most + 1, parts, item)],
        [0, 1],
        JSON.stringify(parts('…')),
      );
    }
    const members = (count: number) =>
      `version: 1\nupstreams:\n${times(count, (i) => `  u${i}: { url: http://a/${i} }`, '\n')}\nroutes: [{ path: /mcp, upstreams: [${times(count, (i) => `u${i}`)}] }]\n`;
    assert.deepEqual(problemsOf(members(256)), []);
    assert.match(problemsOf(members(257)).join(), /at most 256 entries/);
  },
  'endpoints of an upstream, trial of one that failed': () => {
    const endpoints = (count: number) =>
      problemsOf(configured({ upstream: `endpoints: [${times(count, (i) => `"http://a${i}/"`)}]` }));
    assert.deepEqual(endpoints(16), []);
    assert.notDeepEqual(endpoints(17), []);
  },
};

describe('at its edge', () => {
  for (const [row, edge] of Object.entries(HERE)) test(row, edge);
});
