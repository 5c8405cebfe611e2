/**
 * The methods of revision 2026-07-28 as a table: how each is named, routed, read and cached.
 * A new method is a new row. *Spec:* schema 2026-07-28, `ClientRequest`; basic/transports/streamable-http.
 */

import { LEGACY_METHODS } from './legacy.ts';

/** What a server can offer; the key of its capability. */
export type Primitive = 'resources' | 'tools' | 'prompts';

/** How a list result is laid out. */
export interface ListShape {
  /** The member of the result that holds the items. */
  readonly field: 'resources' | 'resourceTemplates' | 'prompts' | 'tools';
  /** The member that identifies an item. */
  readonly idField: 'uri' | 'uriTemplate' | 'name';
}

export interface MethodRow {
  readonly method: string;
  /** `read`: the body is read, checked and rebuilt; `streamed`: bytes flow through. */
  readonly body: 'read' | 'streamed';
  /** The member of `params` that `Mcp-Name` mirrors. */
  readonly named: 'uri' | 'name' | 'taskId' | undefined;
  /** How the owner is found. */
  readonly route:
    | 'uri'
    | 'tool'
    | 'prompt'
    | 'reference'
    | 'merge'
    | 'discover'
    | 'listen'
    | 'task'
    | 'unknown';
  readonly primitive: Primitive | undefined;
  readonly cacheable: boolean;
  readonly list: ListShape | undefined;
  /** May be sent again when no answer began. */
  readonly idempotent: boolean;
}

const row = (method: string, rest: Partial<MethodRow> & Pick<MethodRow, 'body' | 'route'>): MethodRow => ({
  method,
  named: undefined,
  primitive: undefined,
  cacheable: false,
  list: undefined,
  idempotent: false,
  ...rest,
});

const list = (
  method: string,
  primitive: Primitive,
  field: ListShape['field'],
  idField: ListShape['idField'],
): MethodRow =>
  row(method, {
    body: 'read',
    route: 'merge',
    primitive,
    cacheable: true,
    idempotent: true,
    list: { field, idField },
  });

const ROWS: readonly MethodRow[] = [
  row('server/discover', { body: 'read', route: 'discover', cacheable: true, idempotent: true }),
  list('resources/list', 'resources', 'resources', 'uri'),
  list('resources/templates/list', 'resources', 'resourceTemplates', 'uriTemplate'),
  list('prompts/list', 'prompts', 'prompts', 'name'),
  list('tools/list', 'tools', 'tools', 'name'),
  row('resources/read', {
    body: 'read',
    route: 'uri',
    named: 'uri',
    primitive: 'resources',
    cacheable: true,
    idempotent: true,
  }),
  row('completion/complete', { body: 'read', route: 'reference', idempotent: true }),
  row('subscriptions/listen', { body: 'read', route: 'listen' }),
  row('tools/call', { body: 'streamed', route: 'tool', named: 'name', primitive: 'tools' }),
  row('prompts/get', {
    body: 'streamed',
    route: 'prompt',
    named: 'name',
    primitive: 'prompts',
    idempotent: true,
  }),
  row('tasks/get', { body: 'streamed', route: 'task', named: 'taskId', idempotent: true }),
  row('tasks/update', { body: 'streamed', route: 'task', named: 'taskId' }),
  row('tasks/cancel', { body: 'streamed', route: 'task', named: 'taskId' }),
];

const TABLE: ReadonlyMap<string, MethodRow> = new Map(ROWS.map((entry) => [entry.method, entry]));

/** Methods of older revisions that this one removed: always -32601. *Spec:* changelog 2026-07-28. */
const REMOVED: ReadonlySet<string> = new Set([...LEGACY_METHODS, 'tasks/list', 'tasks/result']);

/** Every method name the gateway knows, for closed label sets. */
export const KNOWN_METHODS: readonly string[] = [...ROWS.map((entry) => entry.method), ...LEGACY_METHODS];

/** The row of a method; an unknown one gets a row that only a one-upstream route or a rule can serve. */
export function methodRow(method: string): MethodRow {
  return TABLE.get(method) ?? row(method, { body: 'streamed', route: 'unknown' });
}

/** True for a method that was removed from the protocol. */
export function isRemoved(method: string): boolean {
  return REMOVED.has(method);
}

/** The four list methods by what they list. */
export const LIST_METHODS: readonly MethodRow[] = ROWS.filter((entry) => entry.list !== undefined);
