/**
 * What servers ask of clients in mid-call, in every revision the same: what is asked, and what a client must have said
 * to be asked it. *Never* throws. *Spec:* client/elicitation, client/sampling, client/roots; basic/patterns/mrtr.
 */
import { kindAt, type Member, memberOf, objectMembers, stringValue, textOf } from './json.ts';

const encoder = new TextEncoder();

/** One question. */
export interface Question {
  readonly method: string;
  /** JSON text. */
  readonly params: string | undefined;
}

/** What may be answered with a question. *Spec:* basic/patterns/mrtr, "Supported Requests". */
export const MAY_ASK: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read']);

/** JSON text of the capabilities of one who can be asked nothing. */
export const NO_CAPABILITIES = '{}';

/** What of a capability is told: each is there or not, so that there are few ways to be asked. */
const PARTS: Readonly<Record<string, readonly string[]>> = {
  elicitation: ['form', 'url'],
  sampling: ['tools', 'context'],
  roots: [],
};

/** Reads the method and params of a question. @param at where the object begins. */
export function readQuestion(bytes: Uint8Array, at: number): Question | undefined {
  const members = objectMembers(bytes, at) ?? [];
  const name = memberOf(members, 'method');
  const params = memberOf(members, 'params');
  const method = name && stringValue(bytes, name);
  return method === undefined ? undefined : { method, params: params && textOf(bytes, params) };
}

/** Whether a client with these capabilities can be asked this. @param capabilities what {@link askable} made. */
export function offers(capabilities: string, { method, params }: Question): boolean {
  const bytes = encoder.encode(capabilities);
  const all = objectMembers(bytes, 0) ?? [];
  switch (method) {
    case 'elicitation/create': {
      const elicitation = memberOf(all, 'elicitation');
      const parts = elicitation && objectMembers(bytes, elicitation.start);
      if (parts === undefined) return false;
      // Of a client that names neither, forms are meant.
      return modeOf(params) === 'url'
        ? memberOf(parts, 'url') !== undefined
        : parts.length === 0 || memberOf(parts, 'form') !== undefined;
    }
    case 'sampling/createMessage':
      return memberOf(all, 'sampling') !== undefined;
    case 'roots/list':
      return memberOf(all, 'roots') !== undefined;
    default:
      return false;
  }
}

function modeOf(params: string | undefined): string | undefined {
  const bytes = encoder.encode(params ?? '');
  const mode = memberOf(objectMembers(bytes, 0) ?? [], 'mode');
  return mode && stringValue(bytes, mode);
}

/**
 * JSON text of the capabilities by which a client can be asked: what else it can is of no consequence to a server.
 * @param all the client's capabilities.
 */
export function askable(bytes: Uint8Array, all: Member | undefined): string {
  const members = (all && objectMembers(bytes, all.start)) ?? [];
  const told = Object.entries(PARTS).flatMap(([key, parts]) => {
    const member = memberOf(members, key);
    const inner = member && objectMembers(bytes, member.start);
    if (inner === undefined) return [];
    const has = (part: string): boolean => {
      const value = memberOf(inner, part);
      return value !== undefined && kindAt(bytes, value.start) === 'object';
    };
    const texts = parts.filter(has).map((part) => `"${part}":{}`);
    // Forms alone are said as they were before there was anything else.
    return [`"${key}":${texts.join() === '"form":{}' ? '{}' : `{${texts.join()}}`}`];
  });
  return `{${told.join()}}`;
}
