/** Canaries: a string of its own for every place that may hold a secret, and the search for them. */
import { randomBytes } from 'node:crypto';

/** Place → what stands there and must not be seen elsewhere. */
export const canaries = new Map<string, string>();

/** The canary of a place; letters and digits only, so that no spelling of it differs. */
export function canary(place: string): string {
  const known =
    canaries.get(place) ?? `cnry${place.replaceAll(/[^a-z]/g, '')}${randomBytes(9).toString('hex')}`;
  canaries.set(place, known);
  return known;
}

/** Places whose canary only Alice may see again: she sent it, or it was answered to her. */
export const ALICES = new Set<string>();
export function alices(place: string): string {
  ALICES.add(place);
  return canary(place);
}

/** Bodies that a streamed answer carries to the one who asked, unread. */
export const CALL_BODIES: ReadonlySet<string> = new Set(['broken-json', 'wrong-id']);

/** What is left of a text in base64, wherever in a longer text it stood. */
function spellings(text: string): readonly string[] {
  const inside = [0, 1, 2].map((shift) =>
    Buffer.from('x'.repeat(shift) + text)
      .toString('base64')
      .slice(shift === 0 ? 0 : 4, -4),
  );
  return [text, text.toUpperCase(), ...inside, Buffer.from(text).toString('hex')];
}

/** Names of the places whose canaries are in the text. */
export function found(text: string, places: Iterable<string> = canaries.keys()): string[] {
  return [...places].filter((place) => spellings(canary(place)).some((spelling) => text.includes(spelling)));
}
