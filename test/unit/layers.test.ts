/**
 * The rooms of src/ and the doors of the dependencies, proven against the real biome.json.
 *
 * One fixture per room imports everything there is to import, a line each; one run of Biome over all of them
 * must report exactly the lines that the table below forbids.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';

interface Room {
  /** Rooms it may import from, besides itself. */
  readonly left: readonly string[];
  /** Packages whose only door it is. */
  readonly packages: readonly string[];
  /** Which of Node's own modules it may use. */
  readonly node: 'none' | 'no-files' | 'all';
  readonly env: 'allowed' | 'refused';
}

const INNER = ['protocol', 'config', 'observability', 'auth', 'routing'];
const MIDDLE = [...INNER, 'cache', 'upstream'];
const OUTER = [...MIDDLE, 'aggregate', 'subscriptions'];
const EDGES = [...OUTER, 'pipeline', 'edge', 'admin'];

function room(left: readonly string[], rest: Partial<Room> = {}): Room {
  return { left, packages: [], node: 'no-files', env: 'refused', ...rest };
}

const ROOMS: Readonly<Record<string, Room>> = {
  protocol: room([], { node: 'none' }),
  config: room(['protocol'], { packages: ['zod', 'yaml'], node: 'all', env: 'allowed' }),
  observability: room(['protocol', 'config'], { packages: ['prom-client', 'pino'] }),
  auth: room(['protocol', 'config', 'observability']),
  routing: room(['protocol', 'config', 'observability', 'auth'], { node: 'none' }),
  cache: room(INNER, { packages: ['lru-cache', 'ioredis'] }),
  upstream: room(INNER, { packages: ['undici', 'eventsource-parser'] }),
  aggregate: room(MIDDLE),
  subscriptions: room(MIDDLE),
  pipeline: room(OUTER),
  edge: room([...OUTER, 'pipeline'], { packages: ['fastify'] }),
  admin: room([...OUTER, 'pipeline'], { packages: ['fastify'] }),
  fleet: room([...OUTER, 'pipeline']),
  reload: room(['protocol', 'config', 'observability']),
  retiring: room([...INNER, 'upstream']),
  gateway: room([...EDGES, 'fleet', 'reload', 'retiring'], { node: 'all', env: 'allowed' }),
  inspect: room([...MIDDLE, 'aggregate']),
  cli: room([...EDGES, 'gateway', 'inspect'], { node: 'all', env: 'allowed' }),
  main: room([...EDGES, 'gateway', 'inspect', 'cli'], { node: 'all', env: 'allowed' }),
};

/** Rooms that are one file at the top of src/. */
const ONE_FILE = new Set(['pipeline', 'fleet', 'reload', 'retiring', 'gateway', 'main']);
const PACKAGES = [
  ...new Set(Object.values(ROOMS).flatMap((entry) => entry.packages)),
  'left-pad',
  '@scope/any/sub',
];
const NODE_FILES = ['node:fs', 'node:fs/promises'];
const NODE_REST = ['node:crypto', 'node:stream/promises'];

interface Import {
  readonly specifier: string;
  readonly verdict: 'allowed' | 'forbidden';
}

/** Where a room's file `name` is; of a one-file room there is only the one. */
function fileIn(name: string, file: string): string {
  return ONE_FILE.has(name) ? `src/${name}.ts` : `src/${name}/${file}.ts`;
}

function specifierOf(from: string, to: string): string {
  const target = fileIn(to, 'other').slice('src/'.length);
  return ONE_FILE.has(from) ? `./${target}` : `../${target}`;
}

/** Every import that the fixture of a room makes, with what must be said about it. */
function importsOf(name: string, { left, packages, node }: Room): readonly Import[] {
  const judge = (specifier: string, allowed: unknown): Import => ({
    specifier,
    verdict: allowed ? 'allowed' : 'forbidden',
  });
  const others = Object.keys(ROOMS).filter((other) => other !== name);
  return [
    ...(ONE_FILE.has(name) ? [] : [judge('./neighbour.ts', true)]),
    ...others.map((other) => judge(specifierOf(name, other), left.includes(other))),
    ...PACKAGES.map((specifier) => judge(specifier, packages.includes(specifier))),
    ...NODE_FILES.map((specifier) => judge(specifier, node === 'all')),
    ...NODE_REST.map((specifier) => judge(specifier, node !== 'none')),
    judge('../../outside.ts', false),
    judge('./../cache/detour.ts', false),
  ];
}

/** The ways an import can be written; each room uses them in turn, so that none is a way round. */
const FORMS: readonly ((specifier: string, index: number) => string)[] = [
  (specifier, index) => `export { a as a${index} } from '${specifier}';`,
  (specifier, index) => `export type { A as A${index} } from '${specifier}';`,
  (specifier, index) => `export const i${index} = import('${specifier}');`,
  (specifier, index) => `export * as s${index} from '${specifier}';`,
];

function fixtureOf(imports: readonly Import[]): string {
  const lines = imports.map(({ specifier }, index) => FORMS[index % FORMS.length]?.(specifier, index) ?? '');
  return `${lines.join('\n')}\nexport const home = process.env.HOME;\n`;
}

interface Finding {
  readonly category: string;
  readonly location: { readonly path: string; readonly start: { readonly line: number } };
}

/** Lints the folder once. Biome exits 1 when it has found something; that is no failure here. */
function lint(folder: string): Promise<readonly Finding[]> {
  const biome = join(process.cwd(), 'node_modules/.bin/biome');
  const args = ['lint', '--reporter=json', '--max-diagnostics=none', 'src'];
  return new Promise((resolve, reject) => {
    execFile(biome, args, { cwd: folder, maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
      if (stdout === '') reject(error ?? new Error(stderr));
      else resolve((JSON.parse(stdout) as { diagnostics: Finding[] }).diagnostics);
    });
  });
}

describe('layers', () => {
  let folder = '';
  let findings: readonly Finding[] = [];

  const linesOf = (category: string, path: string): number[] => {
    const hits = findings.filter((entry) => entry.category === category && entry.location.path === path);
    return [...new Set(hits.map((entry) => entry.location.start.line))].sort((a, b) => a - b);
  };

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'headgate-layers-'));
    await copyFile(join(process.cwd(), 'biome.json'), join(folder, 'biome.json'));
    const files: [path: string, text: string][] = [
      ...Object.entries(ROOMS).map(([name, entry]): [string, string] => [
        fileIn(name, 'fixture'),
        fixtureOf(importsOf(name, entry)),
      ]),
      ['src/auth/cycle-a.ts', "import { b } from './cycle-b.ts';\nexport const a = () => b;\n"],
      ['src/auth/cycle-b.ts', "import { a } from './cycle-a.ts';\nexport const b = () => a;\n"],
      [
        'src/admin/page/fixture.ts',
        [
          "export { a as a1 } from './neighbour.ts';",
          "export { a as a2 } from '../server.ts';",
          "export { a as a3 } from '../../protocol/other.ts';",
          "export { a as a4 } from 'node:crypto';\n",
        ].join('\n'),
      ],
      [
        'src/admin/beside.ts',
        "export { a as a1 } from './page/contract.ts';\nexport { a as a2 } from './page/main.ts';\n",
      ],
      ['src/newroom/stray.ts', "export { a } from '../protocol/other.ts';\n"],
      ['src/stray.ts', "export { a } from './protocol/other.ts';\n"],
    ];
    for (const [path, text] of files) {
      await mkdir(join(folder, dirname(path)), { recursive: true });
      await writeFile(join(folder, path), text);
    }
    findings = await lint(folder);
  });

  after(() => rm(folder, { recursive: true, force: true }));

  for (const [name, entry] of Object.entries(ROOMS)) {
    test(`${name} imports only from its left and has only its own doors`, () => {
      const reported = new Set(linesOf('lint/style/noRestrictedImports', fileIn(name, 'fixture')));
      const verdicts = importsOf(name, entry).map(({ specifier }, index) => ({
        specifier,
        verdict: reported.has(index + 1) ? 'forbidden' : 'allowed',
      }));
      assert.deepEqual(verdicts, importsOf(name, entry));
    });

    test(`${name}: reading process.env is ${entry.env}`, () => {
      const reported = linesOf('lint/style/noProcessEnv', fileIn(name, 'fixture'));
      assert.equal(reported.length, entry.env === 'allowed' ? 0 : 1);
    });
  }

  test('the page of the admin port imports itself alone, and that port of it the contract alone', () => {
    assert.deepEqual(linesOf('lint/style/noRestrictedImports', 'src/admin/page/fixture.ts'), [2, 3, 4]);
    assert.deepEqual(linesOf('lint/style/noRestrictedImports', 'src/admin/beside.ts'), [2]);
  });

  test('a file that belongs to no room is reported', () => {
    assert.deepEqual(linesOf('lint/style/noRestrictedImports', 'src/stray.ts'), [1]);
    assert.deepEqual(linesOf('lint/style/noRestrictedImports', 'src/newroom/stray.ts'), [1]);
  });

  test('a cycle is reported, also within a room', () => {
    assert.deepEqual(linesOf('lint/suspicious/noImportCycles', 'src/auth/cycle-a.ts'), [1]);
  });
});
