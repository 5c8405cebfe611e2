/** From what was seen to what an operator should know. Pure; *never* asks anybody. */
import { LEARN_MS } from '../aggregate/learn.ts';
import { CURRENT_VERSION } from '../protocol/meta.ts';
import type {
  CheckFacts,
  Facts,
  HelloFacts,
  HintFacts,
  ListenFacts,
  ListFacts,
  ReadFacts,
  Some,
  Trouble,
  WalkEnd,
} from './facts.ts';
import { FINDINGS, type Finding, type FindingId, finding, type Severity } from './findings.ts';

/** A discover of the gateway's own waits no longer. */
const SLOW_MS = 2_000;
const DAY_MS = 24 * 3_600_000;
/** Named of many. */
const SHOWN = 5;

/** Everything worth saying, the worst first. */
export function judge(facts: Facts): readonly Finding[] {
  const { hello } = facts;
  if (hello.kind === 'unmet') return [unmet(hello)];
  const found = [
    ...ofHello(hello),
    ...ofHints(facts, hello),
    ...facts.lists.flatMap(ofList),
    ...grouped(facts.reads, ofRead, ({ uri }) => uri),
    ...facts.checks.flatMap(ofCheck),
    ...ofListen(facts.listen),
  ];
  return found.sort((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity));
}

const ORDER: readonly Severity[] = ['violation', 'warning', 'note'];

function unmet({ trouble, excerpt }: Extract<HelloFacts, { kind: 'unmet' }>): Finding {
  const detail = excerpt === undefined ? trouble.words : `${trouble.words}; it begins: ${excerpt}`;
  return finding(unmetId(trouble), [], detail);
}

function unmetId({ kind, status }: Trouble): FindingId {
  if (status === 401 || status === 403) return 'unauthorized';
  if (kind === 'tls') return 'bad-certificate';
  return NO_MCP.has(kind) ? 'not-mcp' : 'unreachable';
}

/** Somebody answered. */
const NO_MCP: ReadonlySet<Trouble['kind']> = new Set(['refused', 'broken', 'odd', 'error', 'too_large']);

function ofHello(hello: Extract<HelloFacts, { kind: 'met' }>): Finding[] {
  const { era, revision, versions, medianMs } = hello;
  const found: Finding[] = [];
  if (era === 'older') found.push(finding('older-revision', [], revision));
  else if (!versions.includes(CURRENT_VERSION))
    found.push(finding('no-common-revision', [], versions.slice(0, SHOWN).join(', ')));
  if (medianMs > SLOW_MS) found.push(finding('slow-answers', ['server/discover']));
  return found;
}

/** Hints are judged over everything at once: what is wrong with one is mostly wrong with all. */
function ofHints(
  { target, lists, reads }: Facts,
  { era, hints }: Extract<HelloFacts, { kind: 'met' }>,
): Finding[] {
  // Older revisions know no hints.
  if (era === 'older') return [];
  const all: (readonly [string, HintFacts])[] = [
    ['server/discover', hints],
    ...lists.flatMap((list) => (list.kind === 'walked' ? [[list.method, list.hints] as const] : [])),
    ...reads.flatMap((read) => (read.kind === 'read' ? [[read.uri, read.hints] as const] : [])),
  ];
  return grouped(
    all,
    ([, one]) => hintIds(one, target.credential !== 'none'),
    ([where]) => where,
  );
}

function hintIds({ ttl, scope }: HintFacts, hasCredential: boolean): FindingId[] {
  const ids: FindingId[] = [];
  if (ttl.kind !== 'given') ids.push(ttl.kind === 'absent' ? 'ttl-missing' : 'ttl-wrong');
  else if (ttl.ms === 0) ids.push('ttl-zero');
  else if (ttl.ms > DAY_MS) ids.push('ttl-long');
  if (scope === 'absent') ids.push('scope-missing');
  if (scope === 'wrong') ids.push('scope-wrong');
  if (scope === 'public' && hasCredential && ttl.kind === 'given' && ttl.ms > 0)
    ids.push('public-with-credential');
  return ids;
}

/** One finding of each kind, about all that it is true of. */
function grouped<T>(
  all: readonly T[],
  ids: (one: T) => readonly FindingId[],
  where: (one: T) => string,
): Finding[] {
  const places = new Map<FindingId, string[]>();
  for (const one of all) for (const id of ids(one)) places.set(id, [...(places.get(id) ?? []), where(one)]);
  // In the order of the table, not of the first place.
  return (Object.keys(FINDINGS) as FindingId[]).flatMap((id) => {
    const found = places.get(id);
    return found === undefined ? [] : [finding(id, found)];
  });
}

const ENDS: Readonly<Record<WalkEnd, FindingId | undefined>> = {
  end: undefined,
  'same-cursor': 'cursor-repeats',
  'repeated-cursor': 'cursor-repeats',
  'long-cursor': 'cursor-wrong',
  'odd-cursor': 'cursor-wrong',
  'refused-cursor': 'cursor-refused',
  pages: 'list-unfinished',
  items: 'list-unfinished',
  bytes: 'list-unfinished',
  time: 'list-unfinished',
};

function ofList(list: ListFacts): Finding[] {
  const { method } = list;
  if (list.kind === 'absent') return [finding('list-absent', [method], list.trouble.words)];
  if (list.kind === 'failed')
    return [finding('list-failed', [method], `page ${list.pages + 1}: ${list.trouble.words}`)];
  const some = (id: FindingId, { count, first }: Some): Finding[] =>
    count === 0 ? [] : [finding(id, [method], someWords(count, first))];
  const end = ENDS[list.end];
  return [
    ...(end === undefined ? [] : [finding(end, [method], `${list.pages} pages, ${list.items} items`)]),
    ...(list.end === 'end' && list.totalMs > LEARN_MS ? [finding('list-slow', [method])] : []),
    ...(list.hintsDiffer ? [finding('hints-differ', [method])] : []),
    ...some('items-dropped', list.dropped),
    ...some('duplicate-ids', list.duplicates),
    ...some('template-owns-nothing', list.unowning),
    ...some('template-unmatched', list.unmatched),
  ];
}

function someWords(count: number, first: readonly string[]): string {
  return count > first.length ? `${first.join(', ')} and ${count - first.length} more` : first.join(', ');
}

function ofRead(read: ReadFacts): FindingId[] {
  switch (read.kind) {
    case 'large':
      return ['read-large'];
    case 'asks':
      return ['read-asks'];
    case 'failed':
      return ['read-failed'];
    case 'read':
      switch (read.contents) {
        case 'own-uri':
          return [];
        case 'other-uri':
          return ['read-other-uri'];
        case 'none':
          return ['read-empty'];
        case 'invalid':
          return ['read-invalid'];
      }
  }
}

const ACCEPTED: Readonly<Record<CheckFacts['name'], FindingId>> = {
  'method-header': 'method-header-unchecked',
  'name-header': 'name-header-unchecked',
  'unknown-version': 'version-unchecked',
  'unknown-method': 'unknown-method-answered',
  'unknown-resource': 'unknown-resource-answered',
};

function ofCheck({ name, outcome, came }: CheckFacts): Finding[] {
  switch (outcome) {
    case 'refused':
      return [];
    case 'accepted':
      return [finding(ACCEPTED[name], [name])];
    case 'refused-otherwise':
      return [finding('refused-otherwise', [name], came)];
    case 'unanswered':
      return [finding('check-unanswered', [name], came)];
  }
}

function ofListen(listen: ListenFacts | undefined): Finding[] {
  switch (listen?.kind) {
    case undefined:
      return [];
    case 'not-announced':
      return [finding('no-notifications', [])];
    case 'refused':
      return [finding('listen-refused', listen.asked, listen.words)];
    case 'failed':
      return [finding('listen-failed', listen.asked, listen.words)];
    case 'acknowledged': {
      const missing = listen.asked.filter((name) => !listen.honoured.includes(name));
      return missing.length === 0 ? [] : [finding('listen-partly', missing)];
    }
  }
}
