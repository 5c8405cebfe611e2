import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { BoundedMap } from '../../src/protocol/bounded-map.ts';
import { CHAINS } from '../../src/routing/edition.ts';
import { EDITIONS, ID_LENGTH_MAX } from '../../src/routing/ledger.ts';
import { TOLD_LENGTH_MAX, TOLD_LIMIT } from '../../src/routing/lessons.ts';
import {
  type Audience,
  CONTEXT_LIMIT,
  CONTEXTS,
  Ownership,
  type Place,
  SHARED_BYTES,
  SHARED_LIMIT,
} from '../../src/routing/ownership.ts';
import { INDEX_TEMPLATE_COUNT_MAX } from '../../src/routing/template-index.ts';

const EVERYBODY = { kind: 'everybody' } as const;
const contextual = (context: string): Audience => ({ kind: 'context', context });
const series = (count: number, write: (at: number) => string): string[] =>
  Array.from({ length: count }, (_, at) => write(at));

/** A page of the resources of the upstream at rank 0, loaded unless said otherwise. */
function page(o: Ownership, ids: readonly string[], place: Partial<Place> = {}, bytes: object = {}): number {
  const whole: Place = {
    edition: '',
    ticket: place.ticket ?? o.ticket(),
    cursor: undefined,
    next: undefined,
    came: 'loaded',
    ...place,
  };
  return o.learn('resources', EVERYBODY, 0, ids, bytes, whole);
}

const known = (o: Ownership, ids: readonly string[]): string[] =>
  ids.filter((id) => o.owner('resources', id, 'c') !== undefined);

describe('shares', () => {
  test('R24: a later upstream that lists much takes nothing of what an earlier one listed', () => {
    const o = new Ownership();
    o.learn('resources', EVERYBODY, 0, ['a://1'], {});
    o.learn(
      'resources',
      EVERYBODY,
      1,
      series(SHARED_LIMIT, (at) => `b://${at}`),
      {},
    );
    o.learn('resources', EVERYBODY, 1, ['a://1'], {});
    assert.equal(o.owner('resources', 'a://1', 'c'), 0);
  });

  test('R24: templates of a later upstream leave room for those of an earlier one', () => {
    const o = new Ownership();
    const many = series(INDEX_TEMPLATE_COUNT_MAX, (at) => `b${at}://{x}`);
    o.learn('templates', EVERYBODY, 1, ['a://{+x}', ...many], {});
    o.learn('templates', EVERYBODY, 0, ['a://{x}'], {});
    assert.equal(o.owner('resources', 'a://1', 'c'), 0);
  });

  test('R30: a full share takes no more and says so; what it refused is not "listed, and not there"', () => {
    const o = new Ownership();
    const ids = series(CONTEXT_LIMIT + 1, (at) => `t${at}`);
    assert.ok(o.learn('tools', contextual('c'), 0, ids, {}) > 0);
    o.markListed('tools', contextual('c'), 0, 100);
    assert.equal(o.owner('tools', 't0', 'c'), 0);
    assert.equal(o.extent('tools', 0, 'c', 50), 'part');
  });

  test('R30: a list that fits again is known to its end again', () => {
    const o = new Ownership();
    assert.ok(
      page(
        o,
        series(SHARED_LIMIT + 1, (at) => `r:${at}`),
      ) > 0,
    );
    o.markListed('resources', EVERYBODY, 0, 100);
    assert.equal(o.extent('resources', 0, 'c', 50), 'part');
    page(o, ['r:1']);
    o.markListed('resources', EVERYBODY, 0, 100);
    assert.equal(o.extent('resources', 0, 'c', 50), 'whole');
  });

  test('R30: ids are bounded in bytes; one above 8 KiB is not learnt, and costs the list nothing', () => {
    const o = new Ownership();
    const long = (at: number): string => `a://${at}`.padEnd(ID_LENGTH_MAX, 'x');
    assert.equal(page(o, [long(0), `${long(0)}x`], { next: '1' }), 1);
    o.markListed('resources', EVERYBODY, 0, 100);
    assert.equal(o.extent('resources', 0, 'c', 50), 'whole');
    const room = SHARED_BYTES / (2 * ID_LENGTH_MAX);
    assert.ok(page(o, series(room, long), { cursor: '1' }) > 0);
    assert.equal(o.owner('resources', long(0), 'c'), 0);
  });

  test('R18: more ids than there is room for are gone through in linear time', () => {
    const ids = series(500_000, (at) => `a:${at}`);
    const startedAt = performance.now();
    page(new Ownership(), ids);
    // It took a minute where the oldest made room. Now about 0.2 s.
    assert.ok(performance.now() - startedAt < 5_000);
  });

  test('R30: the contexts that were asked for longest ago make room', () => {
    const o = new Ownership();
    o.learn('tools', contextual('kept'), 0, ['t'], {});
    for (let at = 0; at < CONTEXTS; at++) {
      o.owner('tools', 't', 'kept');
      o.learn('tools', contextual(`c${at}`), 0, ['t'], {});
    }
    assert.deepEqual(
      ['kept', 'c0', `c${CONTEXTS - 1}`].map((context) => o.owner('tools', 't', context)),
      [0, undefined, 0],
    );
    const full = series(CONTEXT_LIMIT, (at) => `${at}`);
    for (const kind of ['tools', 'prompts', 'resources'] as const)
      for (const context of ['x', 'y']) o.learn(kind, contextual(context), 0, full, {});
    assert.equal(o.owner('tools', 't', 'kept'), undefined);
    assert.equal(o.owner('tools', '1', 'y'), 0);
  });

  test('R30: what was found by asking around is bounded, and a list that names it goes before', () => {
    const o = new Ownership();
    const long = 'a://'.padEnd(TOLD_LENGTH_MAX + 1, 'x');
    for (const uri of ['a://first', long]) o.remember(uri, 1, 'c');
    assert.deepEqual(
      ['a://first', long].map((uri) => o.owner('resources', uri, 'c')),
      [1, undefined],
    );
    assert.equal(o.owner('resources', 'a://first', 'd'), undefined);
    for (let at = 0; at < TOLD_LIMIT; at++) o.remember(`a://${at}`, 1, 'c');
    assert.equal(o.owner('resources', 'a://first', 'c'), undefined);
    o.learn('resources', EVERYBODY, 2, ['a://0'], {});
    assert.equal(o.owner('resources', 'a://0', 'c'), 2);
  });

  test('a full map forgets its oldest at the same cost, however much went through it', () => {
    const forgotten: string[] = [];
    const map = new BoundedMap<string, number>(2, (value, key) => forgotten.push(`${key}${value}`));
    for (const [at, key] of ['a', 'b', 'a', 'c', 'd'].entries()) map.set(key, at);
    assert.equal(map.touch('c'), 3);
    map.set('e', 5);
    assert.deepEqual([forgotten, map.oldest(), map.size], [['b1', 'a2', 'd4'], ['c', 3], 2]);
    assert.equal(map.delete('c') && !map.delete('c'), true);
    const large = new BoundedMap<number, number>(200_000);
    const startedAt = performance.now();
    for (let at = 0; at < 600_000; at++) large.set(at, at);
    // It took minutes where every eviction walked over the gaps that the earlier ones left.
    assert.ok(performance.now() - startedAt < 5_000);
  });
});

describe('unlearning', () => {
  test('a list of one page is exact at once: what it no longer names is forgotten', () => {
    const o = new Ownership();
    page(o, ['x', 'y']);
    page(o, ['y', 'z']);
    assert.deepEqual(known(o, ['x', 'y', 'z']), ['y', 'z']);
  });

  test('a list of several pages forgets at its end, and not before', () => {
    const o = new Ownership();
    page(o, ['x'], { next: '1' });
    page(o, ['y'], { cursor: '1' });
    page(o, [], { next: '1' });
    assert.deepEqual(known(o, ['x', 'y']), ['x', 'y']);
    page(o, ['y'], { cursor: '1' });
    assert.deepEqual(known(o, ['x', 'y']), ['y']);
  });

  test('a walk that skipped a page, or began in the middle, forgets nothing', () => {
    const o = new Ownership();
    page(o, ['x'], { next: '1' });
    page(o, ['y'], { cursor: '1', next: '2' });
    page(o, ['z'], { cursor: '2' });
    page(o, [], { next: '1' });
    page(o, [], { cursor: '2' });
    assert.deepEqual(known(o, ['x', 'y', 'z']), ['x', 'y', 'z']);
  });

  test('pages from memory can continue a list, and never begin one', () => {
    const o = new Ownership();
    const second = {};
    page(o, ['x'], { next: '1' });
    page(o, ['y'], { cursor: '1' }, second);
    page(o, [], { came: 'kept', next: '1' });
    page(o, ['y'], { cursor: '1', came: 'kept' }, second);
    assert.deepEqual(known(o, ['x', 'y']), ['x', 'y']);
    page(o, [], { next: '1' });
    page(o, ['y'], { cursor: '1', came: 'kept' }, second);
    assert.deepEqual(known(o, ['x', 'y']), ['y']);
  });

  test('an answer that was asked for before the list changed brings nothing back', () => {
    const o = new Ownership();
    page(o, ['x']);
    const [first, middle] = [o.ticket(), o.ticket()];
    page(o, ['y']);
    page(o, ['x'], { ticket: first });
    page(o, ['x'], { ticket: middle, cursor: '1' });
    assert.deepEqual(known(o, ['x', 'y']), ['y']);
  });

  test('a page that was asked for before the first came does not stand in for the one behind it', () => {
    const o = new Ownership();
    page(o, ['x'], { next: '1' });
    page(o, ['y'], { cursor: '1' });
    const early = o.ticket();
    page(o, [], { next: '1' });
    page(o, [], { ticket: early, cursor: '1' });
    assert.deepEqual(known(o, ['x', 'y']), ['x', 'y']);
  });

  test('those who waited for one load together begin one walk', () => {
    const o = new Ownership();
    const bytes = {};
    page(o, ['x'], { next: '1' }, bytes);
    const second = o.ticket();
    page(o, ['x'], { next: '1' }, bytes);
    page(o, ['y'], { ticket: second, cursor: '1' });
    page(o, ['y'], { next: '1' });
    page(o, [], { cursor: '1' });
    assert.deepEqual(known(o, ['x', 'y']), ['y']);
  });

  test('walks with cursors of their own come to their ends side by side, so many at once', () => {
    const o = new Ownership();
    page(o, ['x']);
    for (let at = 0; at <= CHAINS; at++) page(o, ['y'], { next: `walk ${at}` });
    page(o, [], { cursor: 'walk 0' });
    assert.deepEqual(known(o, ['x', 'y']), ['x', 'y']);
    page(o, [], { cursor: 'walk 1' });
    assert.deepEqual(known(o, ['x', 'y']), ['y']);
  });

  test('a list asked for in another way, or by another caller, forgets nothing of this one', () => {
    const o = new Ownership();
    page(o, ['x'], { edition: 'with elicitation' });
    page(o, []);
    o.learn('resources', contextual('d'), 0, [], {});
    o.learnNone('resources', EVERYBODY, 0, '');
    assert.deepEqual(known(o, ['x']), ['x']);
    o.learnNone('resources', EVERYBODY, 0, 'with elicitation');
    assert.deepEqual(known(o, ['x']), []);
  });

  test('beyond so many editions the one learnt longest ago is forgotten, with its mark', () => {
    const o = new Ownership();
    for (let at = 0; at < EDITIONS; at++) {
      page(o, [`r${at}`], { edition: `${at}` });
      o.markListed('resources', EVERYBODY, 0, 100, `${at}`);
    }
    page(o, ['r'], { edition: 'one more' });
    assert.deepEqual(known(o, ['r0', 'r1', 'r']), ['r1', 'r']);
    assert.deepEqual(
      ['0', '1'].map((edition) => o.extent('resources', 0, 'c', 50, edition)),
      ['unknown', 'whole'],
    );
  });

  test('a list that was everybody’s and comes private is everybody’s no more', () => {
    const o = new Ownership();
    page(o, ['x', 'y']);
    const place: Place = {
      edition: '',
      ticket: o.ticket(),
      cursor: undefined,
      next: undefined,
      came: 'loaded',
    };
    o.learn('resources', contextual('d'), 0, ['y'], {}, place);
    assert.deepEqual(known(o, ['x', 'y']), []);
    assert.equal(o.owner('resources', 'y', 'd'), 0);
  });

  test('a forgotten template owns nothing, unless another edition names it', () => {
    const o = new Ownership();
    const list = (edition: string, texts: readonly string[]): void => {
      const place = { edition, ticket: o.ticket(), cursor: undefined, next: undefined } as const;
      o.learn('templates', EVERYBODY, 0, texts, {}, { ...place, came: 'loaded' });
    };
    list('', ['a://{x}']);
    list('other', ['a://{x}']);
    list('', []);
    assert.equal(o.owner('resources', 'a://1', 'c'), 0);
    list('other', []);
    assert.equal(o.owner('resources', 'a://1', 'c'), undefined);
    assert.equal(o.owner('templates', 'a://{x}', 'c'), undefined);
  });

  test('R15: after a refused cursor no list of it counts as known; one walked since does', () => {
    const o = new Ownership();
    o.markListed('tools', EVERYBODY, 0, 100);
    o.markListed('tools', contextual('c'), 1, 100);
    o.forgetListed('tools', 0);
    assert.deepEqual(
      [0, 1].map((rank) => o.extent('tools', rank, 'c', 50)),
      ['unknown', 'whole'],
    );
    o.markListed('tools', EVERYBODY, 0, 100);
    assert.equal(o.extent('tools', 0, 'c', 50), 'whole');
  });

  test('what is always listed is never forgotten, and a last whole walk leaves exactly the list', () => {
    const walker = fc.nat({ max: 2 });
    const step = fc.oneof(
      fc.record({ kind: fc.constantFrom('ask' as const, 'answer' as const, 'arrive' as const), walker }),
      fc.record({ kind: fc.constant('change' as const), id: fc.constantFrom('b', 'd', 'f', 'h') }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const upstream = new KeysetUpstream();
        const o = new Ownership();
        walkWhole(o, upstream);
        const walkers = [new Walker(o, upstream), new Walker(o, upstream), new Walker(o, upstream)];
        for (const drawn of steps) {
          if (drawn.kind === 'change') upstream.toggle(drawn.id);
          else walkers[drawn.walker]?.[drawn.kind]();
          assert.deepEqual(known(o, STABLE), STABLE);
        }
        walkWhole(o, upstream);
        for (const late of walkers) {
          late.answer();
          late.arrive();
        }
        assert.deepEqual(known(o, [...'abcdefgh']), upstream.list());
      }),
      { numRuns: 1_000 },
    );
  });
});

const STABLE = ['a', 'c', 'e', 'g'];

/** Lists ids in order, two a page; a cursor is the last id of the page before it. */
class KeysetUpstream {
  readonly #listed = new Set(STABLE);

  toggle(id: string): void {
    if (!this.#listed.delete(id)) this.#listed.add(id);
  }

  list(): string[] {
    return [...this.#listed].sort();
  }

  page(cursor: string | undefined): { ids: string[]; next: string | undefined } {
    const rest = this.list().filter((id) => cursor === undefined || id > cursor);
    return { ids: rest.slice(0, 2), next: rest.length > 2 ? rest[1] : undefined };
  }
}

/** Walks again and again; asking, the upstream's answering, and the answer's arrival are steps of their own. */
class Walker {
  readonly #o: Ownership;
  readonly #upstream: KeysetUpstream;
  #cursor: string | undefined;
  #ticket: number | undefined;
  #said: ReturnType<KeysetUpstream['page']> | undefined;

  constructor(o: Ownership, upstream: KeysetUpstream) {
    this.#o = o;
    this.#upstream = upstream;
  }

  ask(): void {
    this.#ticket ??= this.#o.ticket();
  }

  answer(): void {
    if (this.#ticket !== undefined) this.#said ??= this.#upstream.page(this.#cursor);
  }

  arrive(): void {
    if (this.#said === undefined || this.#ticket === undefined) return;
    const { ids, next } = this.#said;
    page(this.#o, ids, { ticket: this.#ticket, cursor: this.#cursor, next });
    this.#cursor = next;
    this.#ticket = undefined;
    this.#said = undefined;
  }
}

function walkWhole(o: Ownership, upstream: KeysetUpstream): void {
  let cursor: string | undefined;
  do {
    const { ids, next } = upstream.page(cursor);
    page(o, ids, { cursor, next });
    cursor = next;
  } while (cursor !== undefined);
}

describe('a route that has changed', () => {
  const listed = (
    o: Ownership,
    rank: number,
    ids: readonly string[],
    audience: Audience = EVERYBODY,
  ): void => {
    o.learn(
      'resources',
      audience,
      rank,
      ids,
      {},
      {
        ...{ edition: 'e', ticket: o.ticket(), cursor: undefined, next: undefined, came: 'loaded' },
      },
    );
    o.markListed('resources', audience, rank, 1_000, 'e');
  };

  test('R44: knows of upstreams that stay what was known of them, at the ranks they have now', () => {
    const before = new Ownership(3);
    listed(before, 0, ['a:1']);
    listed(before, 1, ['b:1', 'both:1']);
    listed(before, 2, ['c:1', 'both:1'], contextual('alice'));
    before.learn('templates', EVERYBODY, 1, ['b://x/{id}'], {});
    before.remember('told:1', 1, 'alice');
    before.remember('told:0', 0, 'alice');
    const after = new Ownership(2);
    after.adopt(
      before,
      new Map([
        [1, 1],
        [2, 0],
      ]),
    );
    const owner = (id: string, context = 'alice'): number | undefined =>
      after.owner('resources', id, context);
    assert.deepEqual(
      ['a:1', 'b:1', 'c:1', 'both:1', 'b://x/7', 'told:1', 'told:0'].map((id) => owner(id)),
      [undefined, 1, 0, 0, 1, 1, undefined],
    );
    // What one caller was taught, another is not.
    assert.equal(owner('c:1', 'bob'), undefined);
    assert.equal(owner('both:1', 'bob'), 1);
    assert.equal(after.extent('resources', 1, 'bob', 500, 'e'), 'whole');
    assert.equal(after.extent('resources', 0, 'bob', 500, 'e'), 'unknown');
    assert.equal(after.extent('resources', 0, 'alice', 500, 'e'), 'whole');
  });

  test('R44: what the last one learns from then on stays there, and what is new is learnt here as ever', () => {
    const before = new Ownership(1);
    listed(before, 0, ['a:1', 'a:2']);
    before.forgetListed('resources', 0);
    const after = new Ownership(1);
    after.adopt(before, new Map([[0, 0]]));
    assert.equal(after.extent('resources', 0, 'c', 500, 'e'), 'unknown');
    listed(before, 0, ['late:1']);
    assert.deepEqual(known(after, ['a:1', 'a:2', 'late:1']), ['a:1', 'a:2']);
    // A whole list says what is gone.
    listed(after, 0, ['a:2', 'a:3']);
    assert.deepEqual(known(after, ['a:1', 'a:2', 'a:3']), ['a:2', 'a:3']);
    assert.deepEqual(known(before, ['a:1', 'a:2', 'late:1']), ['late:1']);
  });

  test('R30: counts what it takes over: contexts make room for one another as ever', () => {
    const before = new Ownership(1);
    for (let at = 0; at < 4; at++)
      listed(
        before,
        0,
        series(CONTEXT_LIMIT, (nth) => `${at}:${nth}`),
        contextual(`c${at}`),
      );
    const after = new Ownership(1);
    after.adopt(before, new Map([[0, 0]]));
    for (let at = 4; at < 7; at++)
      listed(
        after,
        0,
        series(CONTEXT_LIMIT, (nth) => `${at}:${nth}`),
        contextual(`c${at}`),
      );
    const owns = (at: number): boolean => after.owner('resources', `${at}:0`, `c${at}`) !== undefined;
    assert.deepEqual([0, 1, 2, 6].map(owns), [false, false, true, true]);
  });
});
