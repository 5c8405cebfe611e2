import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  compileTemplate,
  matchSteps,
  ownsByPrefix,
  TEMPLATE_EXPRESSION_COUNT_MAX,
  TEMPLATE_LENGTH_MAX,
  type Template,
} from '../../src/routing/template.ts';
import { type Bindings, expand } from '../support/expand-template.ts';

function compiled(text: string): Template {
  const result = compileTemplate(text);
  if (result.kind !== 'template') assert.fail(`${text}: ${result.reason}`);
  return result.template;
}

function matchesEach(text: string, uris: readonly string[]): void {
  const template = compiled(text);
  for (const uri of uris) assert.equal(template.matches(uri), true, `${text} and ${uri}`);
}

function matchesNone(text: string, uris: readonly string[]): void {
  const template = compiled(text);
  for (const uri of uris) assert.equal(template.matches(uri), false, `${text} and ${uri}`);
}

describe('examples of RFC 6570', () => {
  const bindings: Bindings = {
    count: ['one', 'two', 'three'],
    dom: ['example', 'com'],
    dub: 'me/too',
    hello: 'Hello World!',
    half: '50%',
    var: 'value',
    who: 'fred',
    base: 'http://example.com/home/',
    path: '/foo/bar',
    list: ['red', 'green', 'blue'],
    keys: {
      pairs: [
        ['semi', ';'],
        ['dot', '.'],
        ['comma', ','],
      ],
    },
    v: '6',
    x: '1024',
    y: '768',
    empty: '',
    empty_keys: { pairs: [] },
  };
  const examples: readonly (readonly [string, string])[] = [
    ['{count}', 'one,two,three'],
    ['{count*}', 'one,two,three'],
    ['{/count}', '/one,two,three'],
    ['{/count*}', '/one/two/three'],
    ['{;count}', ';count=one,two,three'],
    ['{;count*}', ';count=one;count=two;count=three'],
    ['{?count}', '?count=one,two,three'],
    ['{?count*}', '?count=one&count=two&count=three'],
    ['{&count*}', '&count=one&count=two&count=three'],
    ['{hello}', 'Hello%20World%21'],
    ['{half}', '50%25'],
    ['O{empty}X', 'OX'],
    ['O{undef}X', 'OX'],
    ['{x,hello,y}', '1024,Hello%20World%21,768'],
    ['?{x,empty}', '?1024,'],
    ['?{x,undef}', '?1024'],
    ['?{undef,y}', '?768'],
    ['{var:3}', 'val'],
    ['{var:30}', 'value'],
    ['{keys}', 'semi,%3B,dot,.,comma,%2C'],
    ['{keys*}', 'semi=%3B,dot=.,comma=%2C'],
    ['{+hello}', 'Hello%20World!'],
    ['{+half}', '50%25'],
    ['{base}index', 'http%3A%2F%2Fexample.com%2Fhome%2Findex'],
    ['{+base}index', 'http://example.com/home/index'],
    ['{+path:6}/here', '/foo/b/here'],
    ['up{+path}{var}/here', 'up/foo/barvalue/here'],
    ['{+path,x}/here', '/foo/bar,1024/here'],
    ['{+keys}', 'semi,;,dot,.,comma,,'],
    ['{+keys*}', 'semi=;,dot=.,comma=,'],
    ['{#x,hello,y}', '#1024,Hello%20World!,768'],
    ['{#path:6}/here', '#/foo/b/here'],
    ['foo{#empty}', 'foo#'],
    ['foo{#undef}', 'foo'],
    ['{.who,who}', '.fred.fred'],
    ['{.half,who}', '.50%25.fred'],
    ['www{.dom*}', 'www.example.com'],
    ['X{.var:3}', 'X.val'],
    ['X{.empty}', 'X.'],
    ['X{.list}', 'X.red,green,blue'],
    ['X{.empty_keys*}', 'X'],
    ['{/who,dub}', '/fred/me%2Ftoo'],
    ['{/var,empty}', '/value/'],
    ['{/var:1,var}', '/v/value'],
    ['{/list*,path:4}', '/red/green/blue/%2Ffoo'],
    ['{/keys*}', '/semi=%3B/dot=./comma=%2C'],
    ['{;hello:5}', ';hello=Hello'],
    ['{;v,empty,who}', ';v=6;empty;who=fred'],
    ['{;v,bar,who}', ';v=6;who=fred'],
    ['{;keys*}', ';semi=%3B;dot=.;comma=%2C'],
    ['{?x,y,empty}', '?x=1024&y=768&empty='],
    ['{?x,y,undef}', '?x=1024&y=768'],
    ['{?var:3}', '?var=val'],
    ['{?keys}', '?keys=semi,%3B,dot,.,comma,%2C'],
    ['{?keys*}', '?semi=%3B&dot=.&comma=%2C'],
    ['?fixed=yes{&x}', '?fixed=yes&x=1024'],
    ['{&x,y,empty}', '&x=1024&y=768&empty='],
  ];

  test('the expander of these tests gives what the RFC says', () => {
    for (const [template, uri] of examples) assert.equal(expand(template, bindings), uri, template);
  });

  test('every example matches its template', () => {
    for (const [template, uri] of examples) matchesEach(template, [uri]);
  });
});

describe('literals', () => {
  test('a template without expressions matches itself and nothing else', () => {
    matchesEach('file:///etc/hosts', ['file:///etc/hosts']);
    matchesNone('file:///etc/hosts', ['file:///etc/host', 'file:///etc/hosts/', 'FILE:///etc/hosts', '']);
  });

  test('a literal is compared as given: no case folding, no decoding, no normalisation (R10)', () => {
    matchesNone('res://A/%2Fb/{x}', ['res://a/%2Fb/1', 'res://A/%2fb/1', 'res://A//b/1', 'res://A/./%2Fb/1']);
    matchesNone('res://%C3%BC/{x}', ['res://ü/1', 'res://%c3%bc/1']);
    matchesNone('res://\u00fc/{x}', ['res://u\u0308/1', 'res://%c3%bc/1']);
  });

  test('a literal outside the characters of URIs matches raw and percent-encoded', () => {
    matchesEach('res://ünï/{x}', ['res://ünï/1', 'res://%C3%BCn%C3%AF/1', 'res://ün%C3%AF/1']);
    matchesEach('res://😀 "日"/{x}', ['res://😀 "日"/1', 'res://%F0%9F%98%80%20%22%E6%97%A5%22/1']);
  });

  test('a literal that is wrong, missing or followed by more does not match', () => {
    matchesNone('res://a/{x}/b', [
      'res://b/1/b',
      'res://a/1',
      'res://a/1/',
      'res://a/1/bb',
      'res://a/1/b/',
      'es://a/1/b',
    ]);
  });
});

describe('values', () => {
  test('a simple value may be empty, percent-encoded, raw outside ASCII, or a list', () => {
    matchesEach('res://x/{a}', [
      'res://x/',
      'res://x/a-._~9',
      'res://x/%2F%c3%bc',
      'res://x/ünïcødé',
      'res://x/日,😀',
    ]);
  });

  test('a simple value holds no reserved character', () => {
    matchesNone(
      'res://x/{a}',
      Array.from(':/?#[]@$&+;=', (character) => `res://x/a${character}b`),
    );
  });

  test('no value holds a raw character that no URI has', () => {
    for (const text of ['res://x/{a}', 'res://x/{+a}', 'res://x/{#a}', 'res://x/{?a*}']) {
      matchesNone(
        text,
        Array.from(' "<>\\^`{|}\n\u007f', (character) => `res://x/#?a=${character}`),
      );
    }
  });

  test('a "%" that begins no triplet matches nowhere', () => {
    for (const text of ['res://x/{+a}', 'res://x/{a:2}2{+b}']) {
      matchesNone(text, ['res://x/%', 'res://x/%2', 'res://x/%zz', 'res://x/a%2g', 'res://x/%%41']);
    }
  });

  test('a triplet is never taken apart', () => {
    matchesNone('res://x/{a:1}1', ['res://x/%41']);
    matchesNone('res://x/%25{a}', ['res://x/%2', 'res://x/%41', 'res://x/25']);
  });

  test('reserved and fragment expansion span slashes, query and fragment', () => {
    matchesEach('file:///{+path}', ['file:///a/b?c=d&e#f', 'file:///', "file:///:/?#[]@!$&'()*+,;="]);
    matchesEach('file:///a{#frag}', ['file:///a', 'file:///a#', 'file:///a#/b?c#d']);
    matchesNone('file:///a{#frag}', ['file:///a/b', 'file:///ab']);
  });

  test('a prefix counts characters, however many bytes and triplets they have', () => {
    matchesEach('r:{a:2}', [
      'r:',
      'r:a',
      'r:ab',
      'r:日本',
      'r:%E6%97%A5%E6%9C%AC',
      'r:😀%F0%9F%98%80',
      'r:%41%2F',
    ]);
    matchesNone('r:{a:2}', ['r:abc', 'r:日本語', 'r:%E6%97%A5%E6%9C%ACx', 'r:😀%F0%9F%98%80é', 'r:%41%2Fb']);
    matchesEach('r:{+a:2}/{b:1}', ['r:///', 'r:/', 'r:a//b', 'r:%2F%2F/é']);
  });

  test('the first byte of a prefix counts also where it continues a character', () => {
    matchesNone('r:%C3{a:1}', ['r:%C3%BCx']);
  });

  test('a byte that is part of no character counts as one', () => {
    matchesEach('r:{+a:2}', ['r:%BC%BC', 'r:%FF%C3']);
    matchesNone('r:{+a:2}', ['r:%BC%BC%BC', 'r:%FF%C3%C3']);
  });

  test('a prefix counts from where its value can begin last', () => {
    matchesEach('r:{x*}{+y:2}', ['r:a=b//', 'r:a=b,c=d//']);
    matchesNone('r:{x*}{+y:2}', ['r:a=b///']);
  });

  test('an exploded list and an exploded map are not mixed', () => {
    matchesEach('r:{/a*}', ['r:/b/c', 'r:/b=1/c=2']);
    matchesNone('r:{/a*}', ['r:/b=1/c', 'r:/b/c=1', 'r:/b=1=2']);
  });
});

describe('undefined variables', () => {
  test('an expression of undefined variables leaves nothing behind, its operator included', () => {
    matchesEach('r:a{/b,c}{.d}{;e}{?f,g}{&h}{#i}', [
      'r:a',
      'r:a/b',
      'r:a.d',
      'r:a;e',
      'r:a?g=',
      'r:a&h=1',
      'r:a#',
    ]);
  });

  test('an operator that stands alone with named variables does not match', () => {
    matchesNone('r:a{?f,g}', ['r:a?', 'r:a?&', 'r:a?f', 'r:a?f=1&']);
    matchesNone('r:a{;e}', ['r:a;', 'r:a;e;']);
  });

  test('no more path segments than variables', () => {
    matchesEach('r:a{/b,c}', ['r:a/', 'r:a/1', 'r:a/1/2', 'r:a//']);
    matchesNone('r:a{/b,c}', ['r:a/1/2/3', 'r:a1']);
  });
});

describe('named variables', () => {
  test('come in any subset and any order', () => {
    matchesEach('r:a{?q,page,lang}', ['r:a', 'r:a?page=2', 'r:a?lang=en&q=x', 'r:a?page=1&lang=&q=a,b']);
    matchesEach('r:a{;x,y}', ['r:a;y=1;x=2', 'r:a;y', 'r:a;y;x=2']);
  });

  test('come at most once each', () => {
    matchesNone('r:a{?q,page}', ['r:a?q=1&q=2', 'r:a?q=1&page=2&q=3']);
    matchesNone('r:a{;x,y}', ['r:a;x;x']);
  });

  test('are told apart by their whole name, as given', () => {
    matchesEach('r:a{?id,idx,i.d}', ['r:a?idx=1&id=2&i.d=3']);
    matchesNone('r:a{?id,idx}', ['r:a?i=1', 'r:a?idxx=1', 'r:a?ID=1', 'r:a?%69d=1', 'r:a?other=1']);
  });

  test('more of them than are tracked still match', () => {
    const names = Array.from({ length: 40 }, (_, index) => `v${index}`);
    const uri = `r:a?${names
      .toReversed()
      .map((name) => `${name}=1`)
      .join('&')}`;
    matchesEach(`r:a{?${names.join(',')}}`, [uri]);
    matchesNone(`r:a{?${names.join(',')}}`, [`${uri}&v0=1`]);
  });

  test('a name is free again for an expression that begins later', () => {
    matchesEach('r:{+a}{&x,y}', ['r:&x=1&y=2&x=3', 'r:&x=1&x=1&x=1']);
    matchesNone('r:a{&x,y}', ['r:a&x=1&y=2&x=3']);
  });

  test('an exploded map brings any keys, beside the other variables', () => {
    matchesEach('r:a{?q,rest*}', ['r:a?q=1&k=v', 'r:a?k=v&q=a,b', 'r:a?k=v&k=w', 'r:a?a/b=1']);
    matchesEach('r:a{?q,rest*}', ['r:a?q=1,2&k=v&q=3,4']);
    matchesNone('r:a{?q,rest*}', ['r:a?k', 'r:a?q=a,b&q=c,d', 'r:a?k=/']);
  });
});

describe('the work', () => {
  const adversarial: readonly (readonly [string, string])[] = [
    [`${Array.from('abcdefghijklmnopqrstuvwxyz', (name) => `{+${name}}`).join('')}x`, 'y'],
    [`r:${'{+x}a'.repeat(TEMPLATE_EXPRESSION_COUNT_MAX)}`, 'a'],
    [`r:${'{x*}{y*}'.repeat(32)}!`, 'a=b,'],
    [`r:${'{a:9999}{+b:9999}'.repeat(32)}!`, 'é'],
    [`r:{/${Array.from({ length: 400 }, () => 'x').join(',')}}!`, '/'],
    [`r:{?${Array.from({ length: 300 }, (_, index) => `x${index}`).join(',')},m*}!`, 'x0=1&'],
    [`r:{+a}${'{&x,y,z*}'.repeat(63)}!`, '&x=1&y=2'],
  ];

  test('is bounded by the length of the template times the length of the URI', () => {
    for (const [text, unit] of adversarial) {
      const uri = `r:${unit.repeat(2_000 / unit.length)}`;
      const stepCount = matchSteps(compiled(text), uri);
      assert.ok(stepCount <= 4 * text.length * uri.length, `${text}: ${stepCount}`);
    }
  });

  test('doubles with the length of the URI', () => {
    for (const [text, unit] of adversarial) {
      const [once, twice] = [800, 1_600].map((length) =>
        matchSteps(compiled(text), `r:${unit.repeat(length / unit.length)}`),
      );
      assert.ok(Number(twice) <= 2.1 * Number(once) + 1_000, `${text}: ${once} → ${twice}`);
    }
  });

  test('for neighbours that absorb each other is that of one', () => {
    const uri = 'y'.repeat(65_536);
    assert.equal(matchSteps(compiled('{+a}{+b}{c}{+d}x'), uri), matchSteps(compiled('{+a}x'), uri));
  });
});

describe('compileTemplate', () => {
  test('never throws, and what it compiles matches without throwing', () => {
    const unit = fc.constantFrom(...'{}+#./;?&*:,%=|!@a1_é\ud800 ', '{x', '}{', ':3}');
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 12 }), fc.string({ unit, maxLength: 12 }), (text, uri) => {
        const result = compileTemplate(text);
        if (result.kind === 'template') result.template.matches(uri);
        else assert.notEqual(result.reason, '');
      }),
      { numRuns: 3_000 },
    );
  });

  const malformed: Readonly<Record<string, readonly string[]>> = {
    'reserved operators': ['{=x}', '{,x}', '{!x}', '{@x}', '{|x}'],
    'braces that do not pair up': [
      '{',
      '}',
      '{x',
      'x}',
      '{x}}',
      '{{x}}',
      '{x{y}}',
      '{/id*',
      '/id*}',
      '{?query){&graph*}',
    ],
    'expressions without a variable': ['{}', '{+}', '{?}', '{x,}', '{,}', '{x,,y}', '{*}', '{:3}'],
    'names with other characters': [
      '{a-b}',
      '{~x}',
      '{$x}',
      '{ x}',
      '{x }',
      '{?x, y}',
      '{é}',
      '{??x}',
      '{/?id}',
      '{x+}',
      '{keys?}',
    ],
    'names with misplaced dots or bare percent signs': [
      '{.}',
      '{x.}',
      '{a..b}',
      '{..x}',
      '{%x}',
      '{%4}',
      '{x%}',
    ],
    'prefix lengths that are none': [
      '{x:0}',
      '{x:}',
      '{x:01}',
      '{x:10000}',
      '{x:a}',
      '{x:-1}',
      '{x:1.5}',
      '{x:3*}',
      '{x*:3}',
      '{x:2:3}',
    ],
    'modifiers that are doubled': ['{x**}', '{*x}', '{x*y}'],
    'literals with control characters or bare percent signs': [
      'a\nb',
      'a\u0000{x}',
      'a\u007f',
      '%',
      '100%/{x}',
      '%4{x}',
      '%zz',
      '{x}%',
    ],
  };
  for (const [what, texts] of Object.entries(malformed)) {
    test(`refuses ${what}`, () => {
      for (const text of texts) assert.equal(compileTemplate(text).kind, 'invalid', JSON.stringify(text));
    });
  }

  test('a reason names no part of the text, so that it can be logged (R46)', () => {
    const result = compileTemplate('res://{canary\u0000!}');
    assert.equal(result.kind === 'invalid' && /canary|\0/.test(result.reason), false);
  });

  test('accepts a text of the greatest length and refuses a longer one', () => {
    assert.equal(compileTemplate('x'.repeat(TEMPLATE_LENGTH_MAX)).kind, 'template');
    assert.equal(compileTemplate('x'.repeat(TEMPLATE_LENGTH_MAX + 1)).kind, 'invalid');
  });

  test('accepts the greatest number of expressions and refuses one more', () => {
    assert.equal(compileTemplate('r:{x}'.repeat(TEMPLATE_EXPRESSION_COUNT_MAX)).kind, 'template');
    assert.equal(compileTemplate('r:{x}'.repeat(TEMPLATE_EXPRESSION_COUNT_MAX + 1)).kind, 'invalid');
    assert.equal(compileTemplate('{+x}'.repeat(TEMPLATE_EXPRESSION_COUNT_MAX + 1)).kind, 'invalid');
  });

  test('the literal prefix is the text before the first expression, as written', () => {
    assert.equal(compiled('file:///{+path}').literalPrefix, 'file:///');
    assert.equal(compiled('res://ü%2f/{x}/y').literalPrefix, 'res://ü%2f/');
    assert.equal(compiled('res://a').literalPrefix, 'res://a');
  });

  test('a template without a literal prefix owns nothing', () => {
    assert.equal(ownsByPrefix(compiled('{+uri}')), false);
    assert.equal(ownsByPrefix(compiled('{x}://a')), false);
    assert.equal(ownsByPrefix(compiled('')), false);
    assert.equal(ownsByPrefix(compiled('r{+uri}')), true);
    assert.equal(ownsByPrefix(compiled('res://a')), true);
  });
});

test('what encodeURIComponent leaves as it is, a value may hold', () => {
  const compiled = compileTemplate('res://x/{name}/{other}');
  assert.ok(
    compiled.kind === 'template' &&
      compiled.template.matches("res://x/it's (new)*!/b".replaceAll(' ', '%20')),
  );
});
