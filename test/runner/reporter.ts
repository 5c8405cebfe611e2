/**
 * A reporter for `node --test-reporter`: what happened in one test file, a JSON line each.
 *
 * Runs inside the process of the test file; `file.ts` reads the lines afterwards.
 */
import { inspect } from 'node:util';

/** One line of the record. */
export type TestRecord =
  | { readonly kind: 'enqueued' | 'running' | 'settled'; readonly nesting: number; readonly name: string }
  | { readonly kind: 'started'; readonly nesting: number; readonly name: string }
  | {
      readonly kind: 'passed' | 'failed';
      readonly nesting: number;
      readonly name: string;
      readonly what: 'test' | 'suite';
      readonly skip?: string | true;
      readonly todo?: string | true;
      readonly durationMs: number;
      /** For failures: the error as a person wants to read it; absent when only a subtest failed. */
      readonly error?: string;
    }
  | { readonly kind: 'note'; readonly message: string }
  /** The last one: the file ran to its end. */
  | { readonly kind: 'ended' };

/** The parts of Node's test events that are used here (the types of @types/node 20 lack some). */
interface TestEvent {
  readonly type: string;
  readonly data: {
    readonly name?: string;
    readonly nesting?: number;
    readonly skip?: string | boolean;
    readonly todo?: string | boolean;
    readonly message?: string;
    readonly details?: {
      readonly type?: string;
      readonly duration_ms?: number;
      readonly error?: { readonly failureType?: string; readonly cause?: unknown };
    };
  };
}

const SUMMARY = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$/;

/** An error in full, without the frames of Node itself. */
function describeError(error: { readonly cause?: unknown }): string {
  const cause = error.cause ?? error;
  const text = cause instanceof Error && cause.name === 'AssertionError' ? cause.stack : undefined;
  return (text ?? inspect(cause, { depth: 4 }))
    .split('\n')
    .filter((line) => !/^\s+at .*\(?node:/.test(line))
    .join('\n');
}

function mark(value: string | boolean | undefined): string | true | undefined {
  if (value === undefined || value === false) return undefined;
  return value === '' ? true : value;
}

function recordOf({ type, data }: TestEvent): TestRecord | undefined {
  const { name = '', nesting = 0, details } = data;
  switch (type) {
    case 'test:enqueue':
      return { kind: 'enqueued', nesting, name };
    case 'test:dequeue':
      return { kind: 'running', nesting, name };
    case 'test:complete':
      return { kind: 'settled', nesting, name };
    case 'test:start':
      return { kind: 'started', nesting, name };
    case 'test:pass':
    case 'test:fail': {
      const skip = mark(data.skip);
      const todo = mark(data.todo);
      const cascade = details?.error?.failureType === 'subtestsFailed';
      return {
        kind: type === 'test:pass' ? 'passed' : 'failed',
        nesting,
        name,
        what: details?.type === 'suite' ? 'suite' : 'test',
        durationMs: details?.duration_ms ?? 0,
        ...(skip === undefined ? {} : { skip }),
        ...(todo === undefined ? {} : { todo }),
        ...(details?.error === undefined || cascade ? {} : { error: describeError(details.error) }),
      };
    }
    case 'test:diagnostic': {
      const message = data.message ?? '';
      if (message.startsWith('duration_ms ')) return { kind: 'ended' };
      return SUMMARY.test(message) ? undefined : { kind: 'note', message };
    }
    default:
      return undefined;
  }
}

/** Turns Node's events into lines of JSON. */
export default async function* reporter(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of source) {
    const record = recordOf(event);
    if (record !== undefined) yield `${JSON.stringify(record)}\n`;
  }
}
