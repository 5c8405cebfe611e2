/** Lists: cursors, items, and a page of 40 MB. */
import { setTimeout as wait } from 'node:timers/promises';
import { type Ask, html, type Switch, say, words } from '../simulator.ts';
import {
  HELD_MIB,
  INCOMPLETE,
  type Options,
  type Row,
  row,
  type Says,
  sayAround,
  TIMED,
  within,
} from './row.ts';
import { refusing } from './statuses.ts';

/** A page of a list with these items, named by number. */
function page(ask: Ask, from: number, count: number, nextCursor: unknown): void {
  const resources = Array.from({ length: count }, (_, i) => ({
    uri: `${ask.row}://faulty/${from + i}`,
    name: words('faulty'),
  }));
  say(ask, ask.text({ resources, ...(nextCursor !== undefined && { nextCursor }) }));
}
const listed = (rules: string, fault: string, run: Switch, saw: Says, options: Options = {}): Row =>
  row(rules, fault, run, { list: saw }, options);
const seen = (count: number): string => `200: good, faulty ×${count}; ttl ≤ 1 min; public`;

/** What a page of 40 MB is made of: 10,000 items of 4 KB. */
const BIG_PAGE = { items: 10_000, itemBytes: 4_000 };
// Made once: making it takes longer than sending it.
let bigItems: Buffer | undefined;

export const lists: readonly Row[] = [
  listed(
    'R13',
    'an empty page with a cursor',
    (ask) => page(ask, 1, ask.cursor === undefined ? 0 : 2, ask.cursor === undefined ? 'more' : undefined),
    seen(2),
  ),
  listed(
    'R13',
    'an empty string for a cursor',
    (ask) => page(ask, ask.nth, 1, ask.cursor === undefined ? '' : undefined),
    seen(2),
  ),
  listed('R13', 'a cursor of null', (ask) => page(ask, 1, 2, null), seen(2)),
  listed('R13', 'a cursor that is a number', (ask) => page(ask, 1, 2, 7), seen(2)),
  listed('R13 R18', 'the same cursor for ever', (ask) => page(ask, ask.nth, 1, 'same'), seen(2)),
  listed('R13 R18', 'the empty cursor for ever', (ask) => page(ask, ask.nth, 1, ''), seen(2)),
  listed(
    'R13 R18',
    'a cursor that grows for ever',
    (ask) => page(ask, ask.nth, 1, 'x'.repeat(1_000 * ask.nth)),
    seen(9),
  ),
  listed(
    'R13 R18',
    'two cursors in turn, for ever',
    (ask) => page(ask, ask.cursor === 'a' ? 2 : 1, 1, ask.cursor === 'a' ? 'b' : 'a'),
    seen(2),
  ),
  listed(
    'R13 R18',
    'ever new cursors with empty pages',
    (ask) => page(ask, 1, 0, String(ask.nth)),
    within('firstPages', INCOMPLETE),
  ),
  listed(
    'R13 R18',
    'ever new cursors with empty pages, slowly',
    async (ask) => {
      await wait(200);
      page(ask, 1, 0, String(ask.nth));
    },
    within('firstPages', INCOMPLETE),
  ),
  listed(
    'R13 R18',
    'ever new cursors with items',
    (ask) => page(ask, ask.nth * 500, 500, String(ask.nth)),
    '200: faulty ×2000; more; ttl ≤ 1 min; public',
    { pages: 2 },
  ),
  listed(
    'R15',
    'refuses its own cursor',
    (ask) => (ask.cursor === undefined ? page(ask, 1, 1, 'gone') : refusing(-32602)(ask)),
    '200 -32602',
  ),
  listed(
    'R18',
    'fails on its second page',
    (ask) => (ask.cursor === undefined ? page(ask, 1, 1, 'more') : html(500)(ask)),
    '200: good, faulty; incomplete; ttl 0; public',
  ),
  listed('R16', 'items that are no array', (ask) => say(ask, ask.text({ resources: {} })), INCOMPLETE),
  listed('R16', 'no items member', (ask) => say(ask, ask.text({ resources: undefined })), INCOMPLETE),
  listed(
    'R16',
    'bad items among good ones',
    (ask) => {
      const bad = [
        null,
        7,
        [],
        {},
        { uri: 7, name: 'x' },
        { uri: 'no uri', name: 'x' },
        { uri: 'a:b' },
        { uri: 'a:b', name: 'x', size: 'big' },
      ];
      say(
        ask,
        ask.text({
          resources: [
            ...bad,
            ...(ask.result.resources as unknown[]),
            { uri: 'a:c', name: 'x'.repeat(1_100_000) },
          ],
        }),
      );
    },
    `200: good, ${TIMED}`,
  ),
  listed(
    'R24',
    "another upstream's URIs, listed before it",
    (ask) =>
      say(
        ask,
        ask.text({
          resources: [{ uri: 'good://healthy', name: 'stolen' }, ...(ask.result.resources as unknown[])],
        }),
      ),
    '200: stolen, faulty; ttl ≤ 1 min; public',
  ),
  listed(
    'R24',
    "another upstream's URIs, listed behind it",
    (ask) =>
      say(
        ask,
        ask.text({
          resources: [{ uri: 'good://healthy', name: 'stolen' }, ...(ask.result.resources as unknown[])],
        }),
      ),
    `200: good, ${TIMED}`,
    { order: 'good first' },
  ),
  listed(
    'R16',
    'the same item twice',
    (ask) =>
      say(
        ask,
        ask.text({
          resources: [...(ask.result.resources as unknown[]), ...(ask.result.resources as unknown[])],
        }),
      ),
    `200: good, faulty; ttl ≤ 1 min; public`,
  ),
  listed(
    'R20',
    'unknown members everywhere',
    (ask) =>
      say(
        ask,
        ask.text({
          novel: { a: 1 },
          _meta: { 'x/y': 1 },
          resources: [{ uri: `${ask.row}://faulty`, name: words('faulty'), novel: 1 }],
        }),
      ),
    `200: good, ${TIMED}`,
  ),
  listed(
    'R18 R30',
    'one page of 40 MB',
    (ask) => {
      bigItems ??= Buffer.from(
        Array.from({ length: BIG_PAGE.items }, (_, i) =>
          JSON.stringify({
            uri: `${ask.row}://faulty/${i}`,
            name: words('faulty'),
            description: 'x'.repeat(BIG_PAGE.itemBytes),
          }),
        ).join(','),
      );
      sayAround(ask, ask.text({ resources: ['LARGE'] }), bigItems);
    },
    { saw: '200: good, faulty ×10000; ttl ≤ 1 min; public', next: 'asked again' },
    { memoryMiB: HELD_MIB },
  ),
];
