/** What the page says of itself, also to those who do not see it: one line, gone after a while. */
import { h, setText } from './dom.ts';

const SHOWN_MS = 8_000;
const line = h('p', { class: 'said', role: 'status' });
let timer: number | undefined;

/** Where it stands. */
export function sayingLine(): HTMLElement {
  return line;
}

export function say(text: string): void {
  clearTimeout(timer);
  setText(line, text);
  timer = setTimeout(() => setText(line, ''), SHOWN_MS);
}
