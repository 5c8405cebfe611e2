/** `headgate purge`: asks a running gateway, through its admin port, to drop what it caches. */
import { request } from 'node:http';
import { PURGE_PATH, PURGEABLE, type PurgeOutcome } from '../admin/purge.ts';
import { formatAddress } from '../config/address.ts';
import { nearest } from '../config/nearest.ts';
import { quote } from '../config/problems.ts';
import type { AdminConfig } from '../config/types.ts';
import { loadFile } from './source.ts';
import { type CommandInput, complain, EXIT, type Terminal } from './terminal.ts';

/** A gateway that tells its replicas waits for Redis no longer than a command may take: beyond this it hangs. */
const TIMEOUT_MS = 10_000;
/** An answer has one line; whatever says more is no admin port. */
const MAX_ANSWER_BYTES = 64 << 10;

export async function purge({ options }: CommandInput, terminal: Terminal): Promise<number> {
  const flaw = flawOf(options);
  if (flaw !== undefined) return badCommandLine(terminal, flaw);
  const source = await loadFile(options.config, terminal);
  if (source.kind === 'exit') return source.code;
  const { admin, upstreams } = source.config;
  const unknown = unknownUpstream(options.upstream, [...upstreams.keys()]);
  if (unknown !== undefined) return badCommandLine(terminal, unknown);
  if (admin === false)
    return failed(terminal, `${source.name} says admin: false, so no gateway can be asked`);
  if (admin.address.port === 0)
    return failed(terminal, `${source.name} gives the admin port as 0: write one, so that it can be found`);
  let where: PurgeOutcome['purged'] = 'all-replicas';
  for (const body of bodiesOf(options, [...upstreams.keys()])) {
    const answer = await post(admin, JSON.stringify(body));
    if (answer.kind === 'failed') return failed(terminal, answer.reason);
    if (answer.purged === 'this-replica') where = answer.purged;
  }
  const reach = where === 'all-replicas' ? 'on all replicas' : 'on this replica alone';
  terminal.stdout.write(`purged ${whatOf(options)}, ${reach}\n`);
  return EXIT.fine;
}

type Options = CommandInput['options'];

/** What is wrong with the options, as far as they alone show it. */
function flawOf({ all, upstream, uri, method }: Options): string | undefined {
  if (all !== undefined && (upstream ?? uri ?? method) !== undefined)
    return '--all stands alone: it leaves nothing out';
  if (uri !== undefined && method !== undefined) return 'name --uri or --method, not both';
  if (method === undefined || PURGEABLE.includes(method)) return undefined;
  return `--method: name one whose answers are cached: ${PURGEABLE.join(', ')}`;
}

function unknownUpstream(name: string | undefined, known: readonly string[]): string | undefined {
  if (name === undefined || known.includes(name)) return undefined;
  const meant = nearest(name, known);
  const hint = meant === undefined ? `known: ${known.join(', ')}` : `did you mean ${quote(meant)}?`;
  return `--upstream: unknown upstream ${quote(name)}; ${hint}`;
}

/** One request for each upstream that is meant; nothing named means everything. */
function bodiesOf({ upstream, uri, method }: Options, known: readonly string[]): readonly object[] {
  if ((upstream ?? uri ?? method) === undefined) return [{ all: true }];
  const part = { ...(uri === undefined ? {} : { uri }), ...(method === undefined ? {} : { method }) };
  return (upstream === undefined ? known : [upstream]).map((name) => ({ upstream: name, ...part }));
}

function whatOf({ upstream, uri, method }: Options): string {
  const part = uri === undefined ? method : quote(uri);
  if (part === undefined) return upstream ?? 'everything';
  return `${part} of ${upstream ?? 'every upstream'}`;
}

type Answer =
  | { readonly kind: 'done'; readonly purged: PurgeOutcome['purged'] }
  | { readonly kind: 'failed'; readonly reason: string };

function post({ address, token }: AdminConfig, body: string): Promise<Answer> {
  const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[address.host] ?? address.host;
  const shown = formatAddress({ host, port: address.port });
  return new Promise((resolve) => {
    const fail = (reason: string): void => resolve({ kind: 'failed', reason: `${shown} ${reason}` });
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const headers = {
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
      ...(token === undefined ? {} : { Authorization: `Bearer ${token.reveal()}` }),
    };
    const asked = request(
      { host, port: address.port, path: PURGE_PATH, method: 'POST', headers, signal, agent: false },
      (response) => {
        const chunks: Buffer[] = [];
        let length = 0;
        response.on('data', (chunk: Buffer) => {
          chunks.push(chunk);
          length += chunk.length;
          if (length > MAX_ANSWER_BYTES) response.destroy(new Error('too long an answer'));
        });
        response.on('error', (error) => fail(reasonOf(error, signal)));
        response.on('end', () => {
          const answer = judge(response.statusCode ?? 0, Buffer.concat(chunks).toString());
          if (answer.kind === 'done') resolve(answer);
          else fail(answer.reason);
        });
      },
    );
    asked.on('error', (error) => fail(reasonOf(error, signal)));
    asked.end(body);
  });
}

function reasonOf(error: NodeJS.ErrnoException, signal: AbortSignal): string {
  if (signal.aborted) return `did not answer within ${TIMEOUT_MS / 1000} s`;
  return `cannot be reached (${error.code ?? error.message})`;
}

function judge(status: number, text: string): Answer {
  const { purged, error } = parse(text);
  if (status === 200 && (purged === 'all-replicas' || purged === 'this-replica'))
    return { kind: 'done', purged };
  const said = typeof error === 'string' ? `: ${quote(error)}` : '';
  return {
    kind: 'failed',
    reason: status === 200 ? 'is no admin port of Headgate' : `answered ${status}${said}`,
  };
}

function parse(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function badCommandLine(terminal: Terminal, message: string): number {
  complain(terminal, message);
  return EXIT.badCommandLine;
}

function failed(terminal: Terminal, reason: string): number {
  complain(terminal, `not purged: ${reason}`);
  return EXIT.failed;
}
