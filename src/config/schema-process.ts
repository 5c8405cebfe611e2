/** An upstream that is a process: the keys that go with `command`. That they go together, `checks-process.ts` says. */
import { z } from 'zod';
import { flag, MAX_TEXT, type Mend, type mapping, notPrinted, say, text } from './fields.ts';
import * as mend from './mends.ts';
import { Secret } from './secret.ts';

/** What is said where a command should be. */
export const COMMAND_HINT = 'write the program to start, such as npx or /usr/local/bin/docs-server';

/** A longer command line is a mistake with a file, and systems have their own bound on all of it together. */
const MAX_WORDS = 256;

/** Text that may be empty and may stand twice, unlike that of {@link text}: `--name "" -v -v`. */
function word(title: string, hint: string, check: Mend) {
  const quotes = 'put it in quotes: without them YAML reads a number or a boolean';
  const wrong = say(hint);
  return z
    .string({ error: (issue) => (/^(number|boolean)$/.test(typeof issue.input) ? quotes : wrong(issue)) })
    .max(MAX_TEXT, { error: `write at most ${MAX_TEXT} characters` })
    .refine((value) => check(value) === undefined, {
      error: (issue) => check(String(issue.input)) ?? hint,
      when: ({ issues }) => issues.length === 0,
    })
    .meta({ title });
}

const wordMend: Mend = (value) => notPrinted(value) ?? mend.processTextMend(value);

/** The keys of an upstream that make it a process. */
export const processShape = {
  command: text('command', COMMAND_HINT, mend.commandMend)
    .optional()
    .meta({
      description:
        'In place of `url`: a program that speaks MCP over standard input and output (stdio). A name is looked for in `PATH`; a relative path starts at `cwd`. No shell reads it.',
      examples: ['npx'],
    }),
  args: z
    .array(word('text', 'write a text', wordMend), {
      error: say('write a list of texts, such as [-y, docs-server]'),
    })
    .max(MAX_WORDS, { error: `write at most ${MAX_WORDS} entries` })
    .default([])
    .meta({
      description:
        'Arguments of `command`, each as it is. Other users of the machine can see them: a secret belongs into `env`.',
      examples: [['-y', 'docs-server']],
    }),
  env: z
    .record(
      z.string().refine((name) => mend.variableNameMend(name) === undefined, {
        error: (issue) => mend.variableNameMend(String(issue.input)) ?? '',
      }),
      word('secret', `write the value, such as \${DOCS_TOKEN}`, wordMend).transform(
        (value) => new Secret(value),
      ),
      { error: say(`write a mapping, such as { DOCS_TOKEN: "\${DOCS_TOKEN}" }`) },
    )
    .refine((variables) => Object.keys(variables).length <= MAX_WORDS, {
      error: `write at most ${MAX_WORDS} entries`,
    })
    .prefault({})
    .meta({
      description:
        "Variables of `command`. Values are *never* shown. Of the gateway's own it gets `PATH`, `HOME`, `LANG`, `TMPDIR`, `USER` and `SHELL`, and no others. Example: `{ DOCS_REGION: eu }`.",
    }),
  cwd: text('path', 'write the path of a folder, such as /srv/docs', mend.processTextMend).optional().meta({
    description: "Working directory of `command`; absent: the gateway's.",
  }),
  shared: flag().default(false).meta({
    description:
      'True: callers with credentials use the one process too, which cannot tell them apart. False: callers without credentials only.',
  }),
} satisfies Parameters<typeof mapping>[0];
