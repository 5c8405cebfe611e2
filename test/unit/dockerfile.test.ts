/** The Dockerfiles keep their promises, and what they copy is there and let through: no engine is needed to see that. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { readCommandLine } from '../../src/cli/args.ts';

const ROOT = process.cwd();
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const manifest = JSON.parse(read('package.json'));

interface Instruction {
  readonly name: string;
  readonly text: string;
}

interface Stage {
  readonly from: string;
  readonly as: string | undefined;
  readonly instructions: readonly Instruction[];
}

/** A Dockerfile as stages: comments left out, continued lines joined, arguments of before the first stage filled in. */
function stagesOf(path: string): readonly Stage[] {
  const lines = read(path)
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll('\\\n', ' ')
    .split('\n');
  const args = new Map<string, string>();
  const stages: { from: string; as: string | undefined; instructions: Instruction[] }[] = [];
  for (const line of lines) {
    const [, name = '', text = ''] = /^\s*([A-Z]+)\s+(.*)$/.exec(line) ?? [];
    if (name === 'ARG' && stages.length === 0) {
      const [key = '', value = ''] = text.split('=');
      args.set(key, value);
    } else if (name === 'FROM') {
      const [image = '', , as] = text.split(/\s+/);
      const from = image.replace(/\$\{(\w+)\}/, (_, key: string) => args.get(key) ?? assert.fail(key));
      stages.push({ from, as, instructions: [] });
    } else if (name !== '') stages.at(-1)?.instructions.push({ name, text });
  }
  return stages;
}

/** What a dockerignore of plain paths lets into the build: the last line that speaks of a path decides. */
function letThrough(path: string, ignore: string): boolean {
  let through = true;
  for (const line of ignore.split('\n').filter((text) => text !== '' && !text.startsWith('#'))) {
    const pattern = line.replace(/^!/, '');
    assert.match(pattern, /^(\*|[\w.-]+(\/[\w.-]+)*)$/, 'a plain path');
    if (pattern === '*' || path === pattern || path.startsWith(`${pattern}/`)) through = line.startsWith('!');
  }
  return through;
}

const all = (stage: Stage, name: string): readonly string[] =>
  stage.instructions.filter((instruction) => instruction.name === name).map(({ text }) => text);
const only = (stage: Stage, name: string): string => {
  const found = all(stage, name);
  assert.equal(found.length, 1, name);
  return found[0] ?? '';
};

const FILES = ['deploy/Dockerfile', 'deploy/compose/Dockerfile'];
const stages = stagesOf('deploy/Dockerfile');
const last = stages.at(-1) ?? assert.fail();

for (const file of FILES) {
  describe(file, () => {
    test('copies what is there and is let through, or what an earlier stage made', () => {
      const earlier = new Set<string>();
      let copied = 0;
      for (const stage of stagesOf(file)) {
        for (const text of all(stage, 'COPY')) {
          const parts = text.split(/\s+/);
          const from = /^--from=(.*)$/.exec(parts[0] ?? '')?.[1];
          if (from !== undefined) {
            assert.ok(earlier.has(from), text);
            continue;
          }
          for (const source of parts.slice(0, -1)) {
            assert.ok(existsSync(join(ROOT, source)), source);
            assert.ok(letThrough(source, read(`${file}.dockerignore`)), source);
            copied++;
          }
        }
        if (stage.as !== undefined) earlier.add(stage.as);
      }
      assert.ok(copied > 0);
    });

    test('lets nothing else in: no history, no modules of this machine, no secret', () => {
      const ignore = read(`${file}.dockerignore`);
      for (const path of [
        '.git',
        'node_modules',
        'dist',
        'build',
        '.env',
        'headgate.yaml',
        'deploy',
        'secret',
      ])
        assert.equal(letThrough(path, ignore), false, path);
    });

    test('installs what the lock file says, without running scripts', () => {
      const installs = stagesOf(file).flatMap((stage) =>
        all(stage, 'RUN').filter((run) => run.includes('npm ')),
      );
      assert.ok(installs.some((run) => run.startsWith('npm ci ')));
      for (const run of installs) {
        assert.doesNotMatch(run, /npm (i|install)\b/);
        if (run.includes('npm ci')) assert.match(run, /--ignore-scripts/);
      }
    });

    test('ends as a user that is a number and not root', () => {
      const [user = ''] = all(stagesOf(file).at(-1) ?? assert.fail(), 'USER').slice(-1);
      assert.match(user, /^[1-9]\d*:[1-9]\d*$/);
    });
  });
}

describe('the image of deploy/Dockerfile', () => {
  test('is built in stages on one slim image of Node 24, and holds neither compiler nor sources', () => {
    assert.equal(stages.length, 3);
    for (const { from } of stages) assert.match(from, /^node:24-\w+-slim$/);
    assert.deepEqual(
      all(last, 'COPY').map((text) => text.split(/\s+/).slice(0, -1).join(' ')),
      ['--from=dependencies /app/node_modules', 'package.json LICENSE', '--from=build /app/dist'],
    );
    const dependencies = stages.find(({ as }) => as === 'dependencies') ?? assert.fail();
    assert.match(only(dependencies, 'RUN'), /^npm ci --omit=dev /);
  });

  test('lays down what changes seldom before what changes often', () => {
    const order = last.instructions.map(({ name, text }) => `${name} ${text}`);
    const at = (text: string) => order.findIndex((line) => line.includes(text));
    assert.ok(
      at('/app/node_modules') < at('COPY package.json') && at('COPY package.json') < at('build /app/dist'),
    );
    const build = stages.find(({ as }) => as === 'build') ?? assert.fail();
    const steps = build.instructions.map(({ text }) => text);
    assert.ok(steps.findIndex((text) => text.startsWith('npm ci')) < steps.indexOf('src src'));
  });

  test('runs the gateway, takes another command in its place, and asks the gateway itself for its health', () => {
    const entry = JSON.parse(only(last, 'ENTRYPOINT')) as string[];
    assert.deepEqual(entry, ['node', `/app/${manifest.bin.headgate}`]);
    assert.equal(readCommandLine(JSON.parse(only(last, 'CMD'))).kind, 'run');
    const [, options = '', check = ''] = /^(.*) CMD (.*)$/.exec(only(last, 'HEALTHCHECK')) ?? [];
    assert.deepEqual(JSON.parse(check), [...entry, 'healthcheck']);
    // `healthcheck` itself gives up after two seconds.
    assert.ok(Number(/--timeout=(\d+)s/.exec(options)?.[1]) > 2);
    assert.equal(only(last, 'STOPSIGNAL'), 'SIGTERM');
  });

  test('puts the command headgate in the path, as a file that can be run', () => {
    assert.ok(all(last, 'RUN').includes(`ln -s /app/${manifest.bin.headgate} /usr/local/bin/headgate`));
    const build = stages.find(({ as }) => as === 'build') ?? assert.fail();
    assert.ok(all(build, 'RUN').some((run) => run.includes(`chmod 0755 ${manifest.bin.headgate}`)));
    assert.match(read('src/main.ts'), /^#!\/usr\/bin\/env node\n/);
  });

  test('says of which version it is, and names the ports for traffic and probes, not the admin port', () => {
    assert.match(only(last, 'LABEL'), new RegExp(`org.opencontainers.image.version="${manifest.version}"`));
    assert.match(only(last, 'LABEL'), new RegExp(`licenses="${manifest.license}"`));
    assert.equal(only(last, 'EXPOSE'), '8080 9902');
    assert.match(only(last, 'ENV'), /^NODE_ENV=production$/);
  });

  test('has no secret in arguments or variables', () => {
    for (const stage of stages)
      for (const text of [...all(stage, 'ARG'), ...all(stage, 'ENV')])
        assert.doesNotMatch(text, /token|secret|password|key/i);
  });
});
