/**
 * Reads what comes on a listen stream: notifications that carry the subscription's id, and its end.
 *
 * A message in which a member that decides comes twice is none: two parsers would see two (R39). *Never* throws.
 * *Spec:* basic/patterns/subscriptions.
 */
import { type Member, memberOf, stringValue, textOf, wholeObject } from './json.ts';
import { type ListenFilter, type ListName, NOTHING, readFilter, type Subject } from './listen-filter.ts';
import { META_SUBSCRIPTION_ID } from './meta.ts';

export const LISTEN_METHOD = 'subscriptions/listen';
export const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
export const CANCELLED = 'notifications/cancelled';
export const UPDATED = 'notifications/resources/updated';
/** Of the Tasks extension. */
const TASK = 'notifications/tasks';

export const LIST_CHANGED: Readonly<Record<ListName, string>> = {
  tools: 'notifications/tools/list_changed',
  prompts: 'notifications/prompts/list_changed',
  resources: 'notifications/resources/list_changed',
};
const CHANGED_LIST = new Map(
  Object.entries(LIST_CHANGED).map(([list, method]) => [method, list as ListName]),
);

/** A notification. */
export interface Notification {
  readonly kind: 'notification';
  readonly method: string;
  /** The whole message. */
  readonly message: Uint8Array;
  /** Its place in the message, and its own members where it is an object. */
  readonly params: Member | undefined;
  /** JSON text of the id of the listen that it came for. */
  readonly subscriptionId: string | undefined;
}

export type Notice =
  | Notification
  /** `id`: its JSON text. */
  | { readonly kind: 'response'; readonly id: string | undefined }
  /** A request, or nothing that can be trusted. */
  | { readonly kind: 'other' };

const OTHER: Notice = { kind: 'other' };

/** Reads one message. */
export function readNotice(message: Uint8Array): Notice {
  const members = wholeObject(message, 'params', '_meta');
  if (members === undefined || anyTwice(members)) return OTHER;
  const id = memberOf(members, 'id');
  const method = memberOf(members, 'method');
  if (method === undefined) return { kind: 'response', id: id && textOf(message, id) };
  const name = stringValue(message, method);
  if (name === undefined || id !== undefined) return OTHER;
  const params = memberOf(members, 'params');
  const inner = params?.members ?? [];
  const meta = memberOf(inner, '_meta')?.members ?? [];
  if (anyTwice(inner) || anyTwice(meta)) return OTHER;
  const subscription = memberOf(meta, META_SUBSCRIPTION_ID);
  return {
    kind: 'notification',
    method: name,
    message,
    params,
    subscriptionId: subscription && textOf(message, subscription),
  };
}

function anyTwice(members: readonly Member[]): boolean {
  return members.length > 1 && new Set(members.map((member) => member.key)).size !== members.length;
}

/** What a notification is about; undefined for one that belongs on no listen, or does not say. */
export function subjectOf(notification: Notification): Subject | undefined {
  const list = CHANGED_LIST.get(notification.method);
  if (list !== undefined) return { kind: 'list', list };
  if (notification.method === UPDATED) {
    const uri = stringIn(notification, 'uri');
    return uri === undefined ? undefined : { kind: 'uri', uri };
  }
  if (notification.method !== TASK && !notification.method.startsWith(`${TASK}/`)) return undefined;
  const taskId = stringIn(notification, 'taskId');
  return taskId === undefined ? undefined : { kind: 'task', taskId };
}

/** What an acknowledgment says is honoured. */
export function honouredBy({ message, params }: Notification): ListenFilter {
  const filter = memberOf(params?.members ?? [], 'notifications');
  return (filter && readFilter(message, filter)) ?? NOTHING;
}

/** The JSON text of the id that a `notifications/cancelled` ends; undefined for other notifications. */
export function cancelledBy({ method, message, params }: Notification): string | undefined {
  const id = method === CANCELLED ? memberOf(params?.members ?? [], 'requestId') : undefined;
  return id && textOf(message, id);
}

function stringIn({ message, params }: Notification, key: string): string | undefined {
  const member = memberOf(params?.members ?? [], key);
  return member && stringValue(message, member);
}
