/** A process that speaks over its standard input and output: what is heard of it, and every way it can end. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { describe, test } from 'node:test';
import { environmentOf } from '../../src/config/environment.ts';
import { Lines } from '../../src/upstream/child-lines.ts';
import { redactor, SideTalk } from '../../src/upstream/child-log.ts';
import { until } from '../support/fault-server.ts';
import { ECHO, gone, isGone, logTaker, program, STAY, started } from '../support/process-kit.ts';

const say = (value: unknown): string =>
  `process.stdout.write(${JSON.stringify(`${JSON.stringify(value)}\n`)});`;

describe('messages', () => {
  test('go in as one line each, and come back as they were written', async () => {
    const { child, ear } = started(program(ECHO));
    assert.ok(child.send('{"a":\r\n 1}'));
    assert.ok(child.send(Buffer.from('{"b":"é\\n",\n"c":12345678901234567890}')));
    await ear.heard(2);
    assert.deepEqual(ear.messages, ['{"a":   1}', '{"b":"é\\n", "c":12345678901234567890}']);
    await child.close();
  });

  test('are whole however they come: many at once, in pieces, in half a character, without a last line feed', async () => {
    const bytes = [...Buffer.from('{"x":"é"}\n')];
    const { ear } = started(
      program(`
        process.stdout.write('{"n":1}\\n\\n  \\n{"n":2}\\r\\n');
        const bytes = ${JSON.stringify(bytes)};
        const next = () => {
          if (bytes.length > 0) process.stdout.write(Buffer.from([bytes.shift()]), () => setTimeout(next, 1));
          else process.stdout.write('{"last":true}');
        };
        next();`),
    );
    await ear.end();
    assert.deepEqual(await ear.heard(4), [{ n: 1 }, { n: 2 }, { x: 'é' }, { last: true }]);
  });

  test('are JSON objects; everything else is counted, and shown once without secrets', async () => {
    const junk = ['starting…', '[1]', '"text"', '{"a":1', '{"a":1}{"b":2}', '{a:1}', 'null'];
    const { ear, said } = started(
      program(
        `console.log('hello ' + process.env.TOKEN + 'x'.repeat(1000)); ${JSON.stringify(junk)}.forEach((line) => console.log(line)); ${say({ ok: 1 })}`,
        { TOKEN: 's3cret-value' },
      ),
    );
    await ear.end();
    assert.deepEqual(await ear.heard(1), [{ ok: 1 }]);
    const [shown, ...more] = said('no message to standard output');
    assert.deepEqual(more, []);
    assert.match(String(shown?.fields.line), /^hello \[redacted\]x+…$/);
    assert.equal(String(shown?.fields.line).length, 201);
    assert.deepEqual(
      said('that were no messages').map(({ fields }) => fields.lines),
      [junk.length + 1],
    );
  });

  test('wait in the pipe while they are not read, are then taken, and are refused beyond 64 MiB', async () => {
    const { child, ear } = started(
      program(
        `${say({ up: 1 })} process.on('SIGUSR2', () => process.stdin.on('data', (d) => d.includes(10) && console.log('{"read":1}')));${STAY}`,
      ),
    );
    await ear.heard(1);
    await child.writable;
    const large = `{"x":"${'y'.repeat(1 << 20)}"}`;
    let sent = 0;
    while (child.send(large)) sent++;
    assert.equal(sent, 64);
    let isWritable = false;
    const writable = child.writable.then(() => {
      isWritable = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal(isWritable, false);
    process.kill(child.pid ?? assert.fail(), 'SIGUSR2');
    await writable;
    assert.ok(child.send('{}'));
    await child.close();
    await child.writable;
    assert.equal(child.send('{}'), false);
  });
});

describe('the environment', () => {
  test('is what the configuration says, and six names of the gateway', async () => {
    const own = { PATH: '/bin', HOME: '/root', LANG: 'C', TMPDIR: '/tmp', USER: 'u', SHELL: '/bin/sh' };
    assert.deepEqual(environmentOf(program('', { A: 'b', HOME: '/srv' }), { ...own, API_KEY: 'secret' }), {
      ...own,
      HOME: '/srv',
      A: 'b',
    });
    const { ear } = started(
      program(
        'console.log(JSON.stringify([process.cwd(), process.env.A, Object.keys(process.env)].reduce((all, x, i) => ({ ...all, [i]: x }), {})))',
        { A: 'b' },
        { cwd: '/' },
      ),
    );
    const [said] = (await ear.heard(1)) as [{ 0: string; 1: string; 2: string[] }];
    assert.deepEqual([said[0], said[1]], ['/', 'b']);
    assert.deepEqual(
      said[2].filter((name) => !['A', ...Object.keys(own)].includes(name)),
      [],
    );
    await ear.end();
  });
});

describe('the end', () => {
  test('a command that is missing, and a folder that is', async () => {
    for (const [rest, detail] of [
      [{ command: 'headgate-no-such-command' }, /^spawn ENOENT$/],
      [{ cwd: '/no/such/folder' }, /^spawn ENOENT \(the command, or its cwd\)$/],
      [{ command: '/' }, /^spawn EACCES$/],
      [{ args: ['-e', 'x'.repeat(4 << 20)] }, /^spawn E2BIG$/],
    ] as const) {
      const { child, ear } = started(program(ECHO, {}, rest));
      assert.deepEqual(ear.reasons, [], 'not told before it is returned');
      assert.equal(child.pid, undefined);
      assert.equal(child.send('{}'), false);
      const { kind, proxyError, detail: said } = await ear.end();
      assert.deepEqual([kind, proxyError], ['connect', 'destination_unavailable']);
      assert.match(said, detail);
      await child.close();
      assert.equal(ear.reasons.length, 1);
    }
  });

  test('one that exits at once tells its code and its last line, without secrets', async () => {
    const { child, ear } = started(
      program(
        `console.error('first'); console.error('bad token ' + process.env.TOKEN + '\\n\\n'); process.exitCode = 3;`,
        {
          TOKEN: 's3cret-value',
        },
      ),
    );
    assert.equal(child.send('{}'.repeat(1)), true);
    const reason = await ear.end();
    assert.deepEqual([reason.kind, reason.detail], ['reset', 'exited with code 3: bad token [redacted]']);
    assert.equal(child.send('{}'), false);
    await child.close();
    assert.equal(ear.reasons.length, 1);
  });

  test('one that is killed tells the signal', async () => {
    const { child, ear } = started(program(ECHO));
    process.kill(child.pid ?? assert.fail(), 'SIGKILL');
    assert.equal((await ear.end()).detail, 'ended by SIGKILL');
  });

  test('a line above 64 MiB', async () => {
    const { child, ear } = started(
      program(
        `${say({ n: 1 })} const part = 'x'.repeat(1 << 20); process.stdout.write('{"x":"'); let n = 0; const next = () => { if (n++ < 70) process.stdout.write(part, next); }; next(); ${STAY}`,
      ),
    );
    const { kind, detail } = await ear.end();
    assert.deepEqual([kind, detail], ['too_large', 'a line above 64 MiB on standard output']);
    assert.deepEqual(await ear.heard(1), [{ n: 1 }]);
    await gone(child.pid ?? assert.fail());
  });

  for (const [what, fd] of [
    ['input', 0],
    ['output', 1],
  ] as const) {
    test(`one that closes its standard ${what} and stays`, async () => {
      const { child, ear } = started(
        program(`${say({ up: 1 })} setTimeout(() => require('fs').closeSync(${fd}), 50); ${STAY}`),
      );
      await ear.heard(1);
      const timer = setInterval(() => child.send(`{"x":"${'y'.repeat(100_000)}"}`), 20);
      assert.equal((await ear.end()).detail, `closed its standard ${what}`);
      clearInterval(timer);
      await gone(child.pid ?? assert.fail());
    });
  }

  test('on our side: standard input first, which is enough for most', async () => {
    const { child, ear, lines } = started(
      program(`${ECHO}; process.stdin.on('end', () => console.log('{"bye":1}'))`),
      {
        patienceMs: 60_000,
        lastWordsMs: 500,
      },
    );
    child.send('{"a":1}');
    await ear.heard(1);
    await Promise.all([child.close(), child.close()]);
    assert.deepEqual(
      ear.reasons.map(({ kind }) => kind),
      ['cancelled'],
    );
    assert.deepEqual(await ear.heard(2), [{ a: 1 }, { bye: 1 }]);
    assert.deepEqual(lines, []);
    assert.ok(isGone(child.pid ?? assert.fail()));
  });

  test('on our side: then SIGTERM, then SIGKILL', async () => {
    for (const [onTerm, messages] of [
      [`console.log('{"term":1}'); process.exit()`, 2],
      [`console.log('{"term":1}')`, 2],
    ] as const) {
      const { child, ear } = started(
        program(`process.on('SIGTERM', () => { ${onTerm} }); ${say({ up: 1 })} ${STAY}`),
      );
      await ear.heard(1);
      const before = performance.now();
      await child.close();
      const tookMs = performance.now() - before;
      assert.equal((await ear.heard(messages)).length, messages);
      assert.ok(tookMs >= (onTerm.includes('exit') ? 290 : 590) && tookMs < 5_000, `${tookMs} ms`);
      assert.ok(isGone(child.pid ?? assert.fail()));
    }
  });

  const GRANDCHILD = `const g = require('child_process').spawn(process.execPath, ['-e', "process.on('SIGTERM', () => {}); console.log('{}'); setInterval(() => {}, 1000)"], { stdio: ['ignore', 'inherit', 'inherit'] }); console.log(JSON.stringify({ pid: g.pid }));`;
  for (const [how, script, end] of [
    ['is closed', `${GRANDCHILD} process.stdin.resume()`, 'close'],
    ['crashes', `${GRANDCHILD} process.stdin.on('data', () => process.exit(1))`, 'crash'],
  ] as const) {
    test(`one that ${how} takes along what it has started`, async () => {
      const { child, ear } = started(program(script));
      const said = await ear.heard(2);
      const { pid } =
        said.find((message): message is { pid: number } => Object.hasOwn(message as object, 'pid')) ??
        assert.fail();
      if (end === 'crash') {
        child.send('{}');
        assert.equal((await ear.end()).detail, 'exited with code 1');
      }
      await child.close();
      assert.ok(isGone(pid) && isGone(child.pid ?? assert.fail()));
    });
  }

  for (const [how, end] of [
    ['is killed', 'SIGKILL'],
    ['exits', 'exit'],
  ] as const) {
    test(`with the gateway, when that ${how}`, async () => {
      // Only what reads its standard input sees the gateway killed.
      const script = end === 'exit' ? `process.on('SIGTERM', () => {}); ${STAY}` : ECHO;
      const module = new URL('../../src/upstream/child.js', import.meta.url).href;
      const gateway = spawn(
        process.execPath,
        [
          '--input-type=module',
          '-e',
          `import { startChild } from ${JSON.stringify(module)};
           const child = startChild(${JSON.stringify(program(script))}, { name: 'a' }, { message() {}, ended() {} });
           console.log(child.pid);
           process.stdin.on('data', () => process.exit(0));`,
        ],
        { stdio: ['pipe', 'pipe', 'inherit'] },
      );
      let text = '';
      gateway.stdout.on('data', (chunk) => {
        text += chunk;
      });
      await until(() => text.endsWith('\n'), 'its process', 10_000);
      const pid = Number(text);
      assert.ok(!isGone(pid));
      if (end === 'exit') gateway.stdin.write('x');
      else gateway.kill(end);
      await gone(pid);
    });
  }
});

describe('standard error', () => {
  test('goes to the log line by line, cut, and without secrets', async () => {
    const { ear, said } = started(
      program(
        `process.stderr.write('a ' + process.env.TOKEN.slice(0, 5), () => setTimeout(() => { console.error(process.env.TOKEN.slice(5) + '\\r'); console.error('é'.repeat(600)); console.error(process.env.KEY); }, 20))`,
        { TOKEN: 's3cret-value', KEY: 'line-one\nline-two\n', LEVEL: '1' },
      ),
    );
    await ear.end();
    assert.deepEqual(
      said('upstream process says').map(({ level, fields }) => [level, fields.upstream, fields.line]),
      [
        ['info', 'docs', 'a [redacted]'],
        ['info', 'docs', `${'é'.repeat(500)}…`],
        ['info', 'docs', '[redacted]'],
        ['info', 'docs', '[redacted]'],
      ],
    );
  });

  test('that floods is read and dropped, and nothing else waits for it', async () => {
    const { ear, said } = started(
      program(
        `const line = 'flood '.repeat(20) + '\\n'; let n = 0; const next = () => { if (n++ < 200) process.stderr.write(line.repeat(1000), next); else { ${say({ done: 1 })} } }; next();`,
      ),
    );
    await ear.end();
    assert.deepEqual(await ear.heard(1), [{ done: 1 }]);
    const dropped = said('lines dropped').map(({ fields }) => Number(fields.lines));
    const shown = said('upstream process says').length - dropped.length;
    assert.equal(shown + dropped.reduce((sum, count) => sum + count, 0), 200_000);
    assert.ok(shown <= 20 * (dropped.length + 1), `${shown} lines`);
  });

  test('is logged for 20 lines a second, and one line says how many were not', async () => {
    let now = 0;
    const { lines, log } = logTaker();
    const talk = new SideTalk('docs', [], log, () => now);
    const flood = (count: number): void => talk.stderr(Buffer.from('x\n'.repeat(count)));
    flood(20);
    assert.equal(lines.length, 20);
    flood(5);
    assert.equal(lines.length, 20);
    now = 1_000;
    flood(1);
    assert.deepEqual(
      lines.slice(20).map(({ fields }) => fields.lines ?? fields.line),
      [5, 'x'],
    );
    flood(30);
    talk.end();
    assert.deepEqual(lines.at(-1)?.fields.lines, 11);
    assert.equal(talk.lastLine, 'x');
  });
});

describe('cutting secrets out', () => {
  test('finds the longest first, and the beginning of one where the text was cut off', () => {
    const redact = redactor(['abcdef', 'abcd', 'xyz', 'two\nlines']);
    assert.equal(redact('abcdef abcd xyz lines two', 'whole'), '[redacted] [redacted] xyz [redacted] two');
    assert.equal(redact('1 abcde', 'cut'), '1 [redacted]e');
    assert.equal(redact('1 abc', 'cut'), '1 ');
    assert.equal(redact('1 abc', 'whole'), '1 abc');
  });
});

describe('lines', () => {
  const cut = (maxBytes: number, ...chunks: string[]) => {
    const lines: string[] = [];
    const reader = new Lines(maxBytes, (line, length) => lines.push(`${length} ${Buffer.from(line)}`));
    for (const chunk of chunks) reader.add(Buffer.from(chunk));
    return { reader, lines };
  };

  test('are taken up to their limit, in one chunk or many', () => {
    assert.deepEqual(cut(3, 'abc\nab', 'c\n\nabcd\nx', '\n').lines, [
      'whole abc',
      'whole abc',
      'whole ',
      'cut abc',
      'whole x',
    ]);
    const { reader, lines } = cut(3, 'ab', 'c');
    assert.equal(reader.isTooLong, false);
    reader.add(Buffer.from('d'));
    assert.equal(reader.isTooLong, true);
    reader.end();
    assert.deepEqual(lines, ['cut abc']);
  });
});
