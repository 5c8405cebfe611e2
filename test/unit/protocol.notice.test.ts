/** R39: what of a message on a listen stream is believed, and what a filter covers. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  Coverage,
  filterOf,
  filterText,
  isNothing,
  type ListenFilter,
  NOTHING,
  readFilter,
  type Subject,
  together,
  within,
  without,
} from '../../src/protocol/listen-filter.ts';
import {
  ACKNOWLEDGED,
  cancelledBy,
  honouredBy,
  LISTEN_METHOD,
  type Notification,
  readNotice,
  subjectOf,
} from '../../src/protocol/notice.ts';

const notice = (text: string) => readNotice(Buffer.from(text));
const notification = (text: string): Notification => {
  const found = notice(text);
  assert.ok(found.kind === 'notification');
  return found;
};
const ID = '"_meta":{"io.modelcontextprotocol/subscriptionId":"hg-1"}';
const ALL: ListenFilter = {
  toolsListChanged: true,
  promptsListChanged: true,
  resourcesListChanged: true,
  resourceSubscriptions: ['a:"b"', 'a:ü'],
  taskIds: ['t'],
};

describe('R39: a message', () => {
  test('is read with its subscription id, as it was spelt', () => {
    const found = notification(
      `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b",${ID}}}`,
    );
    assert.equal(found.subscriptionId, '"hg-1"');
    assert.deepEqual(subjectOf(found), { kind: 'uri', uri: 'a:b' });
    assert.equal(notification(`{"method":"x","params":{"_meta":{}}}`).subscriptionId, undefined);
    assert.equal(notification(`{"method":"x"}`).subscriptionId, undefined);
  });

  test('is nothing when a member that decides comes twice, or it is no message', () => {
    for (const text of [
      `{"method":"x","method":"y","params":{${ID}}}`,
      `{"method":"x","params":{${ID}},"params":{${ID}}}`,
      `{"method":"x","params":{"uri":"a:b","uri":"a:c",${ID}}}`,
      `{"method":"x","params":{${ID},${ID}}}`,
      `{"method":"x","params":{"_meta":{"k":1,"k":2}}}`,
      `{"method":7,"params":{${ID}}}`,
      '{"method":"x"',
      '[]',
      '',
    ])
      assert.equal(notice(text).kind, 'other', text);
  });

  test('with an id is a request, without a method a response', () => {
    assert.deepEqual(notice('{"id":1,"method":"roots/list"}'), { kind: 'other' });
    assert.deepEqual(notice(`{"id":1,"method":"${LISTEN_METHOD}"}`), { kind: 'other' });
    assert.deepEqual(notice('{"id":"hg-1","result":{}}'), { kind: 'response', id: '"hg-1"' });
    assert.deepEqual(notice('{"error":{"code":-32603,"message":""}}'), { kind: 'response', id: undefined });
  });

  test('is about a list, a resource, a task, or nothing', () => {
    const about = (method: string, params = '{}') =>
      subjectOf(notification(`{"method":"${method}","params":${params}}`));
    for (const list of ['tools', 'prompts', 'resources'] as const)
      assert.deepEqual(about(`notifications/${list}/list_changed`), { kind: 'list', list });
    assert.deepEqual(subjectOf(notification('{"method":"notifications/tools/list_changed"}')), {
      kind: 'list',
      list: 'tools',
    });
    assert.deepEqual(about('notifications/tasks', '{"taskId":"t"}'), { kind: 'task', taskId: 't' });
    assert.deepEqual(about('notifications/tasks/status', '{"taskId":"t"}'), { kind: 'task', taskId: 't' });
    for (const method of ['notifications/message', 'notifications/progress', 'notifications/tasksy'])
      assert.equal(about(method, '{"taskId":"t","uri":"a:b"}'), undefined);
    assert.equal(about('notifications/resources/updated', '{"uri":7}'), undefined);
    assert.equal(about('notifications/resources/updated', '[]'), undefined);
  });

  test('may cancel a listen, or say what is honoured', () => {
    assert.equal(
      cancelledBy(notification('{"method":"notifications/cancelled","params":{"requestId":1}}')),
      '1',
    );
    assert.equal(cancelledBy(notification('{"method":"other","params":{"requestId":1}}')), undefined);
    const honoured = (text: string) =>
      honouredBy(notification(`{"method":"${ACKNOWLEDGED}","params":{"notifications":${text}}}`));
    assert.deepEqual(honoured(filterText(ALL)), ALL);
    assert.deepEqual(honoured('null'), NOTHING);
    assert.deepEqual(honouredBy(notification('{"method":"x"}')), NOTHING);
  });
});

describe('a filter', () => {
  const read = (text: string) => readFilter(Buffer.from(text), { start: 0, end: text.length });

  test('is written without what is not asked for, and read back', () => {
    assert.equal(filterText(NOTHING), '{}');
    assert.equal(filterText(filterOf((list) => list === 'tools', [], [])), '{"toolsListChanged":true}');
    assert.deepEqual(read(filterText(ALL)), ALL);
    assert.deepEqual(read('{"toolsListChanged":false,"unknown":[{}]}'), NOTHING);
    assert.ok(isNothing(NOTHING) && !isNothing(ALL));
    assert.ok(!isNothing({ ...NOTHING, taskIds: ['t'] }));
  });

  test('of the wrong types is none', () => {
    for (const text of [
      '[]',
      '{"toolsListChanged":1}',
      '{"resourceSubscriptions":"a:b"}',
      '{"resourceSubscriptions":[7]}',
      '{"taskIds":{}}',
      '{"toolsListChanged":true,"toolsListChanged":false}',
    ])
      assert.equal(read(text), undefined, text);
  });

  test('covers what lies below its URIs, not what only begins alike', () => {
    const uris = ['docs://a/b', 'docs://dir/', 'q:x'];
    const coverage = new Coverage({ ...NOTHING, resourceSubscriptions: uris });
    const covers = (uri: string): boolean => coverage.covers({ kind: 'uri', uri });
    for (const uri of [
      'docs://a/b',
      'docs://a/b/c/d',
      'docs://a/b?x',
      'docs://a/b#y',
      'docs://dir/x',
      'q:x/',
    ])
      assert.ok(covers(uri), uri);
    for (const uri of ['docs://a/bc', 'docs://a', 'docs://dir', 'q:xy', '', '/'])
      assert.ok(!covers(uri), uri);
    assert.ok(!coverage.has({ kind: 'uri', uri: 'docs://a/b/c' }));
    assert.ok(!coverage.covers({ kind: 'list', list: 'resources' }));
  });

  test('is asked about a long URI of nothing but slashes without looking up each beginning', () => {
    const coverage = new Coverage({ ...NOTHING, resourceSubscriptions: ['docs://a/b'] });
    const subject: Subject = { kind: 'uri', uri: '/'.repeat(60_000) };
    const startedAt = performance.now();
    for (let n = 0; n < 100; n++) assert.ok(!coverage.covers(subject));
    assert.ok(performance.now() - startedAt < 2_000);
  });

  test('is taken apart and put together', () => {
    const part = new Coverage({ ...NOTHING, toolsListChanged: true, resourceSubscriptions: ['a:ü'] });
    assert.deepEqual(within(ALL, part), part.filter);
    assert.deepEqual(without(ALL, part), {
      ...ALL,
      toolsListChanged: false,
      resourceSubscriptions: ['a:"b"'],
    });
    const both = new Coverage(together([within(ALL, part), without(ALL, part)]));
    assert.ok(isNothing(without(ALL, both)));
  });
});
