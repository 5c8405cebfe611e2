import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { COMMANDS, readCommandLine } from '../../src/cli/args.ts';
import { helpText } from '../../src/cli/help.ts';

const read = (line: string) => readCommandLine(line === '' ? [] : line.split(' '));

describe('reading a command line', () => {
  const RUNS: readonly (readonly [string, string, Readonly<Record<string, string>>, readonly string[]])[] = [
    ['serve', 'serve', {}, []],
    ['serve -c a.yaml', 'serve', { config: 'a.yaml' }, []],
    ['serve -ca.yaml --listen=:0', 'serve', { config: 'a.yaml', listen: ':0' }, []],
    ['serve --config - --admin false', 'serve', { config: '-', admin: 'false' }, []],
    ['serve http://a/ --status :1 http://b/', 'serve', { status: ':1' }, ['http://a/', 'http://b/']],
    ['serve -- -x', 'serve', {}, ['-x']],
    ['validate -c a.yaml', 'validate', { config: 'a.yaml' }, []],
    ['print-config -c a.yaml', 'print-config', { config: 'a.yaml' }, []],
    ['schema', 'schema', {}, []],
    ['healthcheck --url http://a/readyz', 'healthcheck', { url: 'http://a/readyz' }, []],
    ['purge --upstream a --method b --uri c', 'purge', { upstream: 'a', method: 'b', uri: 'c' }, []],
    ['purge --all -c a.yaml', 'purge', { all: 'true', config: 'a.yaml' }, []],
  ];
  for (const [line, command, options, positionals] of RUNS) {
    test(`"${line}" runs ${command}`, () => {
      assert.deepEqual(read(line), { kind: 'run', command, options, positionals });
    });
  }

  test('help is asked for in every usual way', () => {
    for (const line of ['--help', '-h', 'help'])
      assert.deepEqual(read(line), { kind: 'help', command: undefined });
    for (const line of ['serve --help', 'serve -h', 'help serve', 'serve -c a --help']) {
      const answer = read(line);
      assert.equal(answer.kind === 'help' && answer.command?.name, 'serve', line);
    }
  });

  test('the version is asked for in both usual ways', () => {
    for (const line of ['--version', '-V']) assert.deepEqual(read(line), { kind: 'version' });
  });

  const BAD: readonly (readonly [string, RegExp])[] = [
    ['', /a command is missing/],
    ['sevre', /did you mean "serve"/],
    ['frobnicate', /commands: serve, validate/],
    ['help frobnicate', /unknown command/],
    ['--verbose', /unknown option "--verbose"/],
    ['http://a/', /headgate serve URL/],
    ['serve --lisen :0', /did you mean "--listen"/],
    ['serve --lisen=:0', /unknown option "--lisen"; did you mean "--listen"/],
    ['serve -x', /unknown option "-x"; known here: --config/],
    ['serve -c', /-c needs a value: -c FILE/],
    ['serve -c --listen :0', /-c needs a value/],
    ['serve --listen=', /--listen needs a value/],
    ['serve -c a -c b', /-c is given twice/],
    ['serve -c a --config b', /--config is given twice/],
    ['purge --all=no', /--all takes no value/],
    ['purge --all docs', /purge takes no arguments/],
    ['purge --all --all', /--all is given twice/],
    ['validate a.yaml', /validate takes no arguments/],
    ['schema --url x', /unknown option "--url"/],
    ['validate --constructor x', /unknown option/],
  ];
  for (const [line, message] of BAD) {
    test(`"${line}" is refused with ${message}`, () => {
      const answer = read(line);
      assert.equal(answer.kind, 'bad');
      if (answer.kind === 'bad') assert.match(answer.message, message);
    });
  }

  test('no command line raises', () => {
    const word = fc.oneof(
      fc.constantFrom(
        'serve',
        'validate',
        '-c',
        '--config',
        '--listen',
        '--',
        '-',
        '-h',
        '=',
        '--=',
        '-V',
        '__proto__',
        '--__proto__=1',
      ),
      fc.string({ maxLength: 8 }),
    );
    fc.assert(
      fc.property(fc.array(word, { maxLength: 6 }), (args) => {
        assert.ok(readCommandLine(args).kind.length > 0);
      }),
    );
  });
});

describe('help', () => {
  test('of the program names every command and exit code', () => {
    const text = helpText(undefined);
    for (const { name, summary } of COMMANDS) assert.ok(text.includes(name) && text.includes(summary), name);
    assert.match(text, /Exit codes: 0 .* 1 .* 2 .* 3 /);
  });

  for (const command of COMMANDS) {
    test(`of ${command.name} names every option`, () => {
      const text = helpText(command);
      assert.ok(text.startsWith(command.usage));
      for (const { name, value, help } of command.options) {
        assert.ok(text.includes(value === undefined ? `--${name} ` : `--${name} ${value}`), name);
        assert.ok(text.includes(help), name);
        assert.ok(
          command.usage.includes(name === 'config' ? '-c FILE' : `--${name}`),
          `the usage lacks --${name}`,
        );
      }
    });
  }
});
