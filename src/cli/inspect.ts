/** `headgate inspect`: looks at one server, and says what an operator should know. */
import { readTextFile } from '../config/files.ts';
import { nearest } from '../config/nearest.ts';
import { quote } from '../config/problems.ts';
import { Secret } from '../config/secret.ts';
import type { HeadgateConfig, UpstreamConfig } from '../config/types.ts';
import { parseDuration } from '../config/units.ts';
import { judge } from '../inspect/judge.ts';
import { inspect } from '../inspect/probe.ts';
import { countsOf, jsonReport, type Paint, textReport } from '../inspect/report.ts';
import { loadFile, loadUrls } from './source.ts';
import { type CommandInput, complain, EXIT, type Terminal } from './terminal.ts';

type Options = CommandInput['options'];

/** Without a configuration: whoever looks at a server sits and waits. */
const TIMEOUT_MS = 10_000;
/** What may be asked for: shorter ones find nothing, longer ones are no inspection. */
const TIMEOUTS_MS = { least: 100, most: 600_000 } as const;
const TOKEN = /^[\x21-\x7e]+$/;

export async function inspectServer(
  { options, positionals }: CommandInput,
  terminal: Terminal,
): Promise<number> {
  const timeoutMs = options.timeout === undefined ? undefined : parseDuration(options.timeout);
  const flaw = flawOf(options, positionals, timeoutMs);
  if (flaw !== undefined) return badCommandLine(terminal, flaw);
  const source =
    positionals.length === 1 ? loadUrls(positionals, terminal, {}) : await loadFile(options.config, terminal);
  if (source.kind === 'exit') return source.code;
  const chosen = choose(source.config, options.upstream);
  if (typeof chosen === 'string') return badCommandLine(terminal, chosen);
  const bearer = readBearer(options, chosen, terminal);
  if (bearer.kind === 'bad') return badCommandLine(terminal, bearer.message);
  const facts = await inspect({
    config: withTimeout(chosen, timeoutMs ?? (positionals.length === 1 ? TIMEOUT_MS : undefined)),
    bearer: bearer.token,
    uri: options.read,
    maxEntryBytes: source.config.cache.memory.maxEntryBytes,
    now: () => performance.now(),
  });
  const findings = judge(facts);
  terminal.stdout.write(
    options.json === undefined ? textReport(facts, findings, painter(terminal)) : jsonReport(facts, findings),
  );
  return countsOf(findings).violations === 0 ? EXIT.fine : EXIT.failed;
}

/** What is wrong with the command line, as far as it alone shows it. */
function flawOf(
  { config, upstream, timeout }: Options,
  urls: readonly string[],
  timeoutMs: number | undefined,
): string | undefined {
  if (urls.length > 1) return 'name one URL: a server at a time';
  if (urls.length === 1 && (config ?? upstream) !== undefined)
    return 'name a URL, or -c FILE --upstream NAME, not both';
  if (urls.length === 0 && upstream === undefined)
    return 'name the URL of an MCP server, or -c FILE --upstream NAME';
  const { least, most } = TIMEOUTS_MS;
  if (timeout !== undefined && (timeoutMs === undefined || timeoutMs < least || timeoutMs > most))
    return '--timeout: write a time from 100ms to 10m, such as 30s';
  return undefined;
}

/** The upstream that is meant, or what is wrong with its name. */
function choose({ upstreams }: HeadgateConfig, name: string | undefined): UpstreamConfig | string {
  const [first] = upstreams.values();
  const chosen = name === undefined ? first : upstreams.get(name);
  if (chosen !== undefined) return chosen;
  const known = [...upstreams.keys()];
  const meant = nearest(name ?? '', known);
  const hint = meant === undefined ? `known: ${known.join(', ')}` : `did you mean ${quote(meant)}?`;
  return `--upstream: unknown upstream ${quote(name ?? '')}; ${hint}`;
}

type Bearer =
  | { readonly kind: 'read'; readonly token: Secret | undefined }
  | { readonly kind: 'bad'; readonly message: string };

/** A token of a file or the environment: on a command line everybody on the machine could read it. */
function readBearer(options: Options, { auth }: UpstreamConfig, { env }: Terminal): Bearer {
  const file = options['bearer-file'];
  const isConfigured = auth.type === 'bearer' || auth.type === 'header';
  if (file !== undefined && isConfigured)
    return { kind: 'bad', message: `--bearer-file: the upstream has auth: { type: ${auth.type} } already` };
  let text = isConfigured ? undefined : env.HEADGATE_BEARER;
  if (file !== undefined) {
    try {
      text = readTextFile(file);
    } catch (error) {
      return { kind: 'bad', message: `--bearer-file: cannot be read (${(error as Error).message})` };
    }
  }
  const token = text?.trim();
  if (token === undefined || (token === '' && file === undefined)) return { kind: 'read', token: undefined };
  if (!TOKEN.test(token))
    return { kind: 'bad', message: 'the token: write it alone, in visible ASCII without spaces' };
  return { kind: 'read', token: new Secret(token) };
}

function withTimeout(config: UpstreamConfig, timeoutMs: number | undefined): UpstreamConfig {
  if (timeoutMs === undefined) return config;
  const { timeouts } = config;
  return {
    ...config,
    timeouts: {
      ...timeouts,
      connectMs: Math.min(timeouts.connectMs, timeoutMs),
      responseMs: timeoutMs,
      callMs: timeoutMs,
      streamIdleMs: timeoutMs,
    },
  };
}

const COLOURS = { red: 31, green: 32, yellow: 33, grey: 90 } as const;

/** Coloured on a terminal, unless `NO_COLOR` is set and not empty (no-color.org). */
function painter({ stdout, env }: Terminal): Paint {
  const isPlain = !stdout.isTTY || (env.NO_COLOR ?? '') !== '';
  return (text, colour) => (isPlain ? text : `\u001b[${COLOURS[colour]}m${text}\u001b[0m`);
}

function badCommandLine(terminal: Terminal, message: string): number {
  complain(terminal, message);
  return EXIT.badCommandLine;
}
