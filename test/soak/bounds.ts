/** The bounds that the soak holds the gateway to, and the times of its own moves. All in milliseconds. */

/** Within this a change shows, and is told, where nothing is in trouble (design, section 6). */
export const HEAL_MS = 5_000;
/** What a busy machine adds to a time to live. */
export const SLACK_MS = 1_500;
/** Private answers under a forwarded credential are kept for so long at most. */
export const FORWARDED_MS = 60_000;
/** An endpoint that failed is left alone for so long: errors are no wonder until then. */
export const CIRCUIT_MS = 5_500;
/** Longest pause before a broken stream is opened again, when it has failed as often as it can in an outage. */
export const REOPEN_MS = 13_000;
/** An upstream that is up has the streams of all gateways again after this: the longest pause, and a moment. */
export const WATCHED_WITHIN_MS = 45_000;
/** A listen is acknowledged within 500 ms; the rest is the machine's. */
export const ACKNOWLEDGED_MS = 3_000;
/** What one gateway told a client is known to the others then: the message is in Redis, and on its way to them. */
export const PASSED_ON_MS = 250;
/** A gateway that has run for so long, its upstreams up, knows whose a listed resource is. */
export const COLD_MS = 10_000;
/** An answer that takes longer is none. */
export const ANSWER_MS = 15_000;
/** When all is quiet, what was opened for clients is closed after this. */
export const IDLE_WITHIN_MS = 20_000;
/** What a process may hold more at the end than after it had warmed up. */
export const GROWTH_BYTES = 64 * 1024 * 1024;
/** Before this a process is still warming up. */
export const WARM_MS = 15_000;

/** Restarts of one upstream are so far apart: streams that stood for half a minute begin with short pauses again. */
export const RESTART_EVERY_MS = 40_000;
/** The same of Redis, of a flush, and of a gateway. */
export const OTHERS_EVERY_MS = 20_000;
/** The same of another configuration: what is opened anew has no long pauses behind it. */
export const RELOAD_EVERY_MS = 8_000;
