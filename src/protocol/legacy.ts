/** What revisions before this one (2025-11-25 and older) have, on either side of the gateway. */

/** The revisions, newest first. */
export const LEGACY_VERSIONS: readonly string[] = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];
export const NEWEST_LEGACY_VERSION = '2025-11-25';

/** Names a session. *Spec:* 2025-11-25, basic/transports, "Session Management". */
export const SESSION_HEADER = 'mcp-session-id';

/** Methods of theirs that this revision has not, and the gateway answers. */
export const LEGACY_METHODS = [
  'initialize',
  'ping',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
] as const;

/** Log levels, from the most to the least that is said. *Spec:* 2025-11-25, server/utilities/logging. */
export const LOG_LEVELS: readonly string[] = [
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
];

/** Capabilities of servers that mean the same in all revisions. */
export const COMMON_CAPABILITIES: readonly string[] = [
  'resources',
  'tools',
  'prompts',
  'completions',
  'logging',
];
