/** What a resource holds: text as text, five kinds of pictures, and the first bytes of anything else. *Never* run. */
import type { Content, ReadAnswer } from './contract.ts';
import { foreign, h } from './dom.ts';
import { bytes, count, many } from './format.ts';

export function outcomeNodes(outcome: ReadAnswer['outcome']): readonly Node[] {
  switch (outcome.kind) {
    case 'contents': {
      const { contents, leftOut } = outcome;
      const nodes: Node[] = contents.map((content, at) => contentNode(content, at, contents.length));
      if (contents.length === 0) nodes.push(h('p', { class: 'note' }, 'It is empty.'));
      if (leftOut > 0) nodes.push(h('p', { class: 'note' }, `${many(leftOut, 'more content')} not shown.`));
      return nodes;
    }
    case 'input-required':
      return [
        h('p', { class: 'note' }, 'The server asks its client something first; this page has no answer.'),
      ];
    case 'large':
      return [
        h('p', { class: 'note' }, 'It is larger than what is kept or shown here; to a client it would flow.'),
      ];
    case 'trouble': {
      const { status, code, message, data } = outcome.trouble;
      return [
        h('p', { class: 'wrong' }, foreign(message)),
        h('p', { class: 'note' }, `HTTP ${status}, code ${code}`),
        ...(data === undefined ? [] : [h('pre', { tabindex: '0' }, foreign(data, 'lines'))]),
      ];
    }
  }
}

function contentNode(content: Content, at: number, of: number): HTMLElement {
  const type = content.mimeType === '' ? 'no media type' : content.mimeType;
  const place = of === 1 ? 'Content' : `Content ${at + 1} of ${of}`;
  return h(
    'figure',
    {},
    h('figcaption', {}, h('b', {}, place), ' ', foreign(type), ' ', h('code', {}, foreign(content.uri))),
    ...bodyOf(content, place),
  );
}

function bodyOf(content: Content, place: string): readonly Node[] {
  switch (content.kind) {
    case 'text':
      return [
        h(
          'pre',
          { tabindex: '0', role: 'region', 'aria-label': `${place}, as text` },
          foreign(content.text, 'lines'),
        ),
        ...(content.leftOut === 0
          ? []
          : [h('p', { class: 'note' }, `Cut: ${count(content.leftOut)} characters more are not shown.`)]),
      ];
    case 'image':
      return [
        h('img', {
          src: `data:${content.mimeType};base64,${content.base64}`,
          alt: `${place}: a picture, ${bytes(content.bytes)}`,
        }),
      ];
    case 'bytes':
      return [
        h('p', { class: 'note' }, `${bytes(content.bytes)}, shown as bytes:`),
        h(
          'pre',
          { tabindex: '0', class: 'hex' },
          (content.hex.match(/.{1,32}/g) ?? []).map(spaced).join('\n'),
        ),
      ];
  }
}

function spaced(line: string): string {
  return (line.match(/../g) ?? []).join(' ');
}
