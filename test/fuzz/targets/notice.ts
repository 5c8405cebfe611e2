/** Messages on a listen stream: what is believed of them is what any other parser reads. */
import assert from 'node:assert/strict';
import { filterText, readFilter } from '../../../src/protocol/listen-filter.ts';
import {
  ACKNOWLEDGED,
  cancelledBy,
  honouredBy,
  readNotice,
  subjectOf,
} from '../../../src/protocol/notice.ts';
import type { Target } from '../engine.ts';
import { readTree, type Tree } from '../json-tree.ts';
import { mutateBytes, mutatedJson } from '../mutate.ts';

const META = '"_meta":{"io.modelcontextprotocol/subscriptionId":"hg-1"}';
const TEXTS: readonly string[] = [
  `{"jsonrpc":"2.0","method":"${ACKNOWLEDGED}","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:b","a:ü"],"taskIds":["t"]},${META}}}`,
  `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"docs://a/\\u00e4","title":"x",${META}}}`,
  `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{${META}}}`,
  `{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"t","status":"working",${META}}}`,
  '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"hg-1"}}',
  `{"jsonrpc":"2.0","id":"hg-1","result":{"resultType":"complete",${META}}}`,
];
const encoder = new TextEncoder();
const TOKENS: readonly string[] = [
  '"method":"x",',
  '"id":1,',
  `${META},`,
  '"uri":"a:c",',
  '"params":{},',
  '{',
  '}',
  '"',
];
const TREES = TEXTS.map((text) => readTree(text) as Tree);
const SEED_BYTES = TEXTS.map((text) => encoder.encode(text));

interface Message {
  readonly id?: unknown;
  readonly method?: unknown;
  readonly params?: Readonly<Record<string, unknown>> & {
    readonly _meta?: Readonly<Record<string, unknown>>;
  };
}

/** A message that is believed says to every parser what it said to this one (R39). */
export const noticeReader: Target<{ readonly bytes: Uint8Array }> = {
  name: 'notice-reader',
  about: 'never throws; method, id, subject and filter of a message on a listen are those JSON.parse finds',
  generate(random) {
    const bytes = encoder.encode(mutatedJson(random, random.pick(TREES)));
    return { bytes: random.once(3) ? mutateBytes(random, bytes, TOKENS, SEED_BYTES) : bytes };
  },
  check({ bytes }) {
    const notice = readNotice(bytes);
    if (notice.kind === 'other') return 'other';
    const message = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as Message;
    if (notice.kind === 'response') {
      assert.ok(!('method' in message));
      assert.deepEqual(notice.id === undefined ? undefined : JSON.parse(notice.id), message.id);
      return 'response';
    }
    const { params } = message;
    assert.ok(!('id' in message));
    assert.equal(notice.method, message.method);
    const id = notice.subscriptionId;
    if (id !== undefined)
      assert.deepEqual(JSON.parse(id), params?._meta?.['io.modelcontextprotocol/subscriptionId']);
    const cancelled = cancelledBy(notice);
    if (cancelled !== undefined) assert.deepEqual(JSON.parse(cancelled), params?.requestId);
    const subject = subjectOf(notice);
    if (subject?.kind === 'uri') assert.equal(subject.uri, params?.uri);
    if (subject?.kind === 'task') assert.equal(subject.taskId, params?.taskId);
    const honoured = honouredBy(notice);
    const text = encoder.encode(filterText(honoured));
    assert.deepEqual(readFilter(text, { start: 0, end: text.length }), honoured);
    return subject === undefined ? 'notification' : `about a ${subject.kind}`;
  },
};
