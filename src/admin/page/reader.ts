/** One resource: read by its URI, what is in it, and exactly how the answer came about. */
import { post } from './client.ts';
import { type How, type Listed, type ListedItem, READ_PATH, type ReadAnswer } from './contract.ts';
import { allowed } from './dialogs.ts';
import { fact, foreign, h, wide } from './dom.ts';
import { bytes, duration, latency } from './format.ts';
import { purgeResource } from './purging.ts';
import { outcomeNodes } from './shown.ts';

export interface Reader {
  readonly element: HTMLElement;
  open(item: ListedItem, list: Listed): void;
}

/** @param route the one that is looked at. */
export function createReader(route: () => string): Reader {
  const uri = h('input', { id: 'uri', type: 'text', autocomplete: 'off', spellcheck: 'false', required: '' });
  const read = h('button', { type: 'submit', class: 'main' }, 'Read');
  const answer = h('div', { class: 'answer' });
  const status = h('p', { class: 'unseen', role: 'status' });
  const form = h(
    'form',
    { class: 'controls' },
    h('div', { class: 'field grow' }, h('label', { for: 'uri' }, 'URI'), uri),
    read,
  );
  const element = h(
    'section',
    { class: 'panel reader', 'aria-labelledby': 't-read' },
    h('h2', { id: 't-read' }, 'Read a resource'),
    form,
    status,
    answer,
  );
  answer.append(h('p', { class: 'note' }, HINT));
  let under: AbortController | undefined;

  const ask = async (): Promise<void> => {
    under?.abort();
    const mine = new AbortController();
    under = mine;
    const wanted = { route: route(), uri: uri.value };
    answer.setAttribute('aria-busy', 'true');
    const got = await allowed(() => post<ReadAnswer>(READ_PATH, wanted, mine.signal));
    if (mine.signal.aborted) return;
    answer.removeAttribute('aria-busy');
    switch (got.kind) {
      case 'ok':
        status.textContent = `${KINDS[got.value.how.kind][1]}. ${got.value.how.means}`;
        return answer.replaceChildren(...show(got.value, wanted.uri));
      default: {
        const why = got.kind === 'refused' ? got.message : 'the gateway does not answer';
        status.textContent = `Not read: ${why}`;
        return answer.replaceChildren(h('p', { class: 'wrong' }, `Not read: ${why}.`));
      }
    }
  };
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void ask();
  });
  return {
    element,
    open({ id }, list) {
      uri.value = id;
      element.scrollIntoView({ block: 'nearest' });
      if (list === 'resources') void ask();
      else fillIn(uri);
    },
  };
}

const HINT =
  'Choose a resource from the catalogue, or write a URI. It is read as a client without credentials would read it.';

/** A template is to be filled in: its first expression is selected. */
function fillIn(input: HTMLInputElement): void {
  input.focus();
  const { index = 0, 0: found = input.value } = /\{[^}]*\}/.exec(input.value) ?? {};
  input.setSelectionRange(index, index + found.length);
}

const KINDS = {
  hit: ['good', 'Hit'],
  stale: ['warn', 'Stale'],
  miss: ['none', 'Miss'],
  bypass: ['none', 'Bypassed'],
  none: ['none', 'Not cached'],
} as const;

function show(read: ReadAnswer, uri: string): readonly Node[] {
  const { how, upstream } = read;
  const [tone, word] = KINDS[how.kind];
  const purge = h('button', { type: 'button', class: 'quiet' }, 'Purge this resource');
  if (upstream !== undefined) purge.addEventListener('click', () => void purgeResource(upstream, uri));
  return [
    h(
      'div',
      { class: 'how' },
      h('p', { class: `verdict ${tone} ${how.kind}` }, word),
      h('p', {}, how.means),
      upstream === undefined ? undefined : purge,
    ),
    h('dl', { class: 'facts' }, ...factsOf(read, how)),
    ...outcomeNodes(read.outcome),
  ];
}

function factsOf({ upstream, template, ttlMs, scope, bytes: size }: ReadAnswer, how: How): readonly Node[] {
  const took = how.upstreamMs > 0 ? `, ${latency(how.upstreamMs)} of it at the upstream` : '';
  return [
    fact('Upstream', upstream ?? 'none'),
    fact('Took', `${latency(how.tookMs)}${took}`),
    fact('Still fresh for', ttlMs === undefined ? '\u2013' : ttlMs === 0 ? 'no time' : duration(ttlMs)),
    fact('Scope', scope === undefined ? '\u2013' : (SCOPES[scope] ?? scope)),
    ...(how.ageSeconds === undefined ? [] : [fact('Age', `${how.ageSeconds} s`)]),
    fact('Answer', size === 0 ? '\u2013' : bytes(size)),
    ...(template === undefined ? [] : [wide('Template', h('code', {}, foreign(template)))]),
    wide('Cache-Status', h('code', {}, how.cacheStatus === '' ? '\u2013' : how.cacheStatus)),
  ];
}

const SCOPES: Readonly<Record<string, string>> = {
  public: 'public: for every caller',
  private: 'private: for anonymous callers',
};
