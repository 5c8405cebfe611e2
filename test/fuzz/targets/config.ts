/** Configuration files, however broken: problems or a configuration, and never a secret in what is printed (R46). */
import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { printConfig } from '../../../src/config/print.ts';
import { formatProblem } from '../../../src/config/problems.ts';
import type { HeadgateConfig } from '../../../src/config/types.ts';
import { CANARY, loadText } from '../../support/config.ts';
import { CONFIGS } from '../corpus.ts';
import type { Target } from '../engine.ts';
import { mutateText } from '../mutate.ts';

const TOKENS: readonly string[] = [
  '\n',
  '  ',
  '\t',
  ':',
  ': ',
  '- ',
  '#',
  '"',
  "'",
  '|',
  '>',
  '&a ',
  '*a',
  '!!str ',
  '!x ',
  '%YAML 1.1\n',
  '---\n',
  '...\n',
  '?',
  '{',
  '}',
  '[',
  ']',
  ',',
  '<<: *a\n',
  '\u0000',
  '\ufeff',
  '"a\u0085\u202e": 1\n',
  '"\\u001b[2J": 1\n',
  '\\',
  '~',
  'null',
  '0x10',
  '1e3',
  '.inf',
  '2001-01-01',
  'yes',
  '__proto__: 1\n',
  'constructor: {}\n',
  '$',
  `\${`,
  '}',
  `\${TOKEN}`,
  `\${API_KEY}`,
  `\${file:./api-key}`,
  `\${file:/run/secrets/headgate}`,
  `\${NOPE}`,
  `\${TOKEN:-x}`,
  `\${WORD:-}`,
  `$\${TOKEN}`,
  `auth: { type: bearer, token: "\${TOKEN}" }`,
  `secrets: ["\${TOKEN}"]`,
  `url: "http://\${TOKEN}/"`,
  `args: ["\${TOKEN}"]`,
  `env: { A: "\${TOKEN}" }`,
  'command: npx',
  'upstreams:',
  'routes:',
  'cache:',
  'redis: {}',
  `listen: "\${TOKEN}"`,
  'listen: 0.0.0.0:0',
  '99999999999999999999s',
  '-1s',
  '5m',
  '1.5GiB',
  'http://user:pw@x/',
  'file:///{a',
  '**',
  '/mcp',
  'X-Y',
  'mcp-name',
  'é',
];

/** Part of a secret is a secret: what is looked for in all that is printed. */
const SECRET_PART = CANARY.slice(0, 20);

/** What ends a line, or makes a terminal do something. */
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/;

type ConfigCase = { readonly text: string };

export const configFile: Target<ConfigCase> = {
  name: 'config-file',
  about: 'any text is a configuration or a list of problems; neither throws, neither shows an expanded value',
  generate(random) {
    const seed = random.pick(CONFIGS);
    return { text: random.once(12) ? random.text(200) : mutateText(random, seed, TOKENS, CONFIGS) };
  },
  check({ text }) {
    const result = loadText(text);
    const problems = result.kind === 'ok' ? result.warnings : result.problems;
    for (const problem of problems) {
      const line = formatProblem('headgate.yaml', problem);
      assert.ok(!line.includes(SECRET_PART), `a problem shows a secret: ${line}`);
      assert.doesNotMatch(line, UNSAFE, 'a problem is more than a line');
      assert.ok(problem.line >= 0 && problem.column >= 0 && line.length < 2_000, `an odd problem: ${line}`);
    }
    if (result.kind === 'invalid') {
      assert.ok(
        problems.some(({ severity }) => severity === 'error'),
        'refused without a word',
      );
      return `invalid ${Math.min(problems.length, 9)}`;
    }
    const { config } = result;
    const printed = printConfig(config);
    // Whoever writes a secret where none belongs, as a path or a host, sees it there.
    if (!nonSecrets(config).includes(SECRET_PART)) {
      for (const told of [printed, JSON.stringify(config, mapsToo), inspect(config, { depth: 9 })])
        assert.ok(!withoutUrls(told).includes(SECRET_PART), 'a configuration shows a secret');
      assert.ok(!printed.includes(SECRET_PART), 'print-config shows a secret');
    }
    return problems.length === 0 ? 'fine' : 'fine, with warnings';
  },
};

/** Everything of a configuration that is no place for a secret. */
function nonSecrets({ upstreams, secrets: _, ...rest }: HeadgateConfig): string {
  const plain = [...upstreams].map(([name, { endpoints, auth, ...others }]) => {
    const hosts = endpoints.map(({ host, protocol }) => [host, protocol]);
    return [name, hosts, auth.type, auth.type === 'header' ? auth.name : '', others];
  });
  return JSON.stringify([rest, plain]);
}

function mapsToo(_: string, value: unknown): unknown {
  return value instanceof Map ? [...value] : value;
}

/** An endpoint is needed whole to be asked; it is `displayUrl` that must be used to show it. */
function withoutUrls(text: string): string {
  return text
    .replaceAll(/https?:\/\/[^\s"',]*/g, 'URL')
    .replaceAll(/(pathname|search|href|searchParams|hash|username|password): .*/g, '$1');
}
