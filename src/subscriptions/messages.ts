/**
 * The messages of a listen, each made once for all who hear it: everything but the id that stamps it.
 * *Spec:* basic/patterns/subscriptions, "Receiving Notifications". *Never* I/O.
 */
import { type Member, objectMembers, textOf } from '../protocol/json.ts';
import { filterText, type ListenFilter, type ListName } from '../protocol/listen-filter.ts';
import { META_SUBSCRIPTION_ID } from '../protocol/meta.ts';
import { ACKNOWLEDGED, LIST_CHANGED, UPDATED } from '../protocol/notice.ts';

/** JSON text around the listen's own id. */
export interface Message {
  readonly before: string;
  readonly after: string;
}

/** The JSON text for the listen with this id, itself a JSON text. */
export function stamped({ before, after }: Message, id: string): string {
  return before + id + after;
}

export function acknowledged(filter: ListenFilter): Message {
  return message(ACKNOWLEDGED, '', `,"notifications":${filterText(filter)}`);
}

export function listChanged(list: ListName): Message {
  return message(LIST_CHANGED[list], '', '');
}

export function updated(uri: string): Message {
  return message(UPDATED, '', `,"uri":${JSON.stringify(uri)}`);
}

/** A notification as the upstream sent it, its own subscription's id left out. @param params the bytes of an object. */
export function passedOn(method: string, params: Uint8Array): Message {
  const members = objectMembers(params, 0) ?? [];
  const meta = members.find(({ key }) => key === '_meta');
  const inner = (meta && objectMembers(params, meta.start)) ?? [];
  const others = (all: readonly Member[], own: string): string =>
    all
      .filter(({ key }) => key !== own)
      .map((member) => `,${JSON.stringify(member.key)}:${textOf(params, member)}`)
      .join('');
  return message(method, others(inner, META_SUBSCRIPTION_ID), others(members, '_meta'));
}

/** The result of the listen with this id. *Spec:* basic/patterns/subscriptions, "Graceful Closure". */
export function completed(id: string): string {
  const meta = `"_meta":{"${META_SUBSCRIPTION_ID}":${id}}`;
  return `{"jsonrpc":"2.0","id":${id},"result":{"resultType":"complete",${meta}}}`;
}

function message(method: string, meta: string, rest: string): Message {
  return {
    before: `{"jsonrpc":"2.0","method":${JSON.stringify(method)},"params":{"_meta":{"${META_SUBSCRIPTION_ID}":`,
    after: `${meta}}${rest}}}`,
  };
}
