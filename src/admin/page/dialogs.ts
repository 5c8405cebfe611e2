/** What is asked in between: the token, and whether something is really meant. */
import { forgetToken, type Got, keepToken, keptToken } from './client.ts';
import { h } from './dom.ts';

/** Asks; resolves with the answer. Enter and Escape do what they do in every dialog. */
export function confirmed(title: string, what: Node, yes: string): Promise<boolean> {
  const no = h('button', { type: 'button' }, 'Cancel');
  const go = h('button', { type: 'button', class: 'danger' }, yes);
  const dialog = h(
    'dialog',
    { 'aria-labelledby': 'dialog-title' },
    h('h2', { id: 'dialog-title' }, title),
    h('div', { class: 'what' }, what),
    h('div', { class: 'buttons' }, no, go),
  );
  document.body.append(dialog);
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue === 'yes');
    });
    no.addEventListener('click', () => dialog.close());
    go.addEventListener('click', () => dialog.close('yes'));
    dialog.showModal();
    go.focus();
  });
}

let asking: Promise<void> | undefined;

/** Asks the gateway, and for the token as often as it wants one. @param locked told when it does. */
export async function allowed<T>(
  ask: () => Promise<Got<T>>,
  locked: () => void = () => undefined,
): Promise<Exclude<Got<T>, { kind: 'unauthorized' }>> {
  for (;;) {
    const used = keptToken();
    const got = await ask();
    if (got.kind !== 'unauthorized') return got;
    // Somebody may have given another one meanwhile.
    if (asking === undefined && used !== keptToken()) continue;
    locked();
    await askForToken();
  }
}

/** Asks for the token, once for all who need it; resolves when there is one to try. */
function askForToken(): Promise<void> {
  asking ??= openTokenDialog().finally(() => {
    asking = undefined;
  });
  return asking;
}

function openTokenDialog(): Promise<void> {
  const wasWrong = keptToken() !== null;
  forgetToken();
  const input = h('input', {
    ...{ id: 'token', type: 'password', autocomplete: 'off', spellcheck: 'false', required: '' },
    'aria-describedby': 'token-help',
    ...(wasWrong && { 'aria-invalid': 'true' }),
  });
  const help = wasWrong
    ? 'The gateway refused that token. It is admin.token of its configuration.'
    : 'It is admin.token of the configuration, and is kept for this tab alone.';
  const form = h(
    'form',
    {},
    h('h2', { id: 'token-title' }, 'The gateway wants its admin token'),
    h('p', { id: 'token-help', ...(wasWrong && { class: 'wrong', role: 'alert' }) }, help),
    h('label', { for: 'token' }, 'Admin token'),
    input,
    h('div', { class: 'buttons' }, h('button', { type: 'submit', class: 'main' }, 'Continue')),
  );
  const dialog = h('dialog', { 'aria-labelledby': 'token-title', class: 'token' }, form);
  document.body.append(dialog);
  return new Promise((resolve) => {
    // Without it there is nothing to see.
    dialog.addEventListener('cancel', (event) => event.preventDefault());
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      keepToken(input.value.trim());
      dialog.close();
      dialog.remove();
      resolve();
    });
    dialog.showModal();
    input.focus();
  });
}
