/** The effective configuration: read when it is looked at, and again when it has changed. */
import { get } from './client.ts';
import { CONFIG_PATH, type ConfigAnswer, type State } from './contract.ts';
import { allowed } from './dialogs.ts';
import { h, panel, setText } from './dom.ts';
import type { Part } from './vitals.ts';

export function createConfigView(): Part {
  const text = h('pre', { tabindex: '0', role: 'region', 'aria-label': 'Effective configuration' });
  const note = h('p', { class: 'note' }, 'Every default is filled in; secrets are redacted.');
  let shown = '';
  let wanted = '';
  const element = panel('Configuration', { class: 'panel config' }, note, text);
  const load = async (): Promise<void> => {
    if (element.hidden || wanted === '' || wanted === shown) return;
    const asked = wanted;
    const got = await allowed(() => get<ConfigAnswer>(CONFIG_PATH));
    if (got.kind !== 'ok') return setText(text, 'It cannot be read just now.');
    shown = asked;
    setText(text, got.value.yaml);
  };
  new MutationObserver(() => void load()).observe(element, { attributeFilter: ['hidden'] });
  return {
    element,
    update({ configuration }: State) {
      wanted = configuration;
      void load();
    },
  };
}
