/** `headgate serve`: options, configuration, signals. The gateway itself is `gateway.ts`. */
import { formatAddress, parseAddress } from '../config/address.ts';
import { packageVersion } from '../config/files.ts';
import type { Overrides } from '../config/normalize.ts';
import type { Address, HeadgateConfig } from '../config/types.ts';
import type { Running, startGateway } from '../gateway.ts';
import { Reloader } from './reloader.ts';
import { loadFile, loadUrls, type Source } from './source.ts';
import { type CommandInput, complain, EXIT, type Terminal } from './terminal.ts';

/** Runs until a signal ends it; resolves with the exit code. A test passes its own `start`. */
export async function serve(
  { options, positionals }: CommandInput,
  terminal: Terminal,
  start: typeof startGateway = loadAndStart,
): Promise<number> {
  if (options.config !== undefined && positionals.length > 0) {
    complain(terminal, 'name a file or URLs, not both: the URLs stand for a whole configuration');
    return EXIT.badCommandLine;
  }
  const overrides = readOverrides(options);
  if (overrides.kind === 'bad') {
    complain(terminal, overrides.message);
    return EXIT.badCommandLine;
  }
  const source =
    positionals.length > 0
      ? loadUrls(positionals, terminal, overrides.value)
      : await loadFile(options.config, terminal, overrides.value);
  return source.kind === 'exit' ? source.code : run(source, terminal, start);
}

/** The gateway is loaded once there is a configuration for it: a bad one is told at once. */
const loadAndStart: typeof startGateway = async (config, io) =>
  (await import('../gateway.ts')).startGateway(config, io);

async function run(
  { config, file }: Extract<Source, { kind: 'loaded' }>,
  terminal: Terminal,
  start: typeof startGateway,
): Promise<number> {
  const signals = catchSignals(terminal);
  let reloader: Reloader | undefined;
  try {
    const running = await start(config, {
      stdout: terminal.stdout,
      stderr: terminal.stderr,
      version: packageVersion(),
    });
    reloader = file && new Reloader(file, running);
    signals.attach(running, reloader);
    return await running.done;
  } catch (error) {
    complain(terminal, explainStartFailure(error, config));
    return EXIT.failed;
  } finally {
    reloader?.close();
    signals.release();
  }
}

const NOTHING_TO_RELOAD =
  'SIGHUP: there is no file that could be read again; the running configuration stays';

/**
 * The first SIGTERM or SIGINT drains, the second forces; SIGHUP reloads. None that comes during start-up is lost.
 */
function catchSignals(terminal: Terminal) {
  let running: Running | undefined;
  let reloader: Reloader | undefined;
  let hungUp = false;
  let count = 0;
  let first: NodeJS.Signals = 'SIGTERM';
  const stop = (signal: NodeJS.Signals) => {
    count++;
    if (count === 1) {
      first = signal;
      running?.shutdown(signal);
    } else if (running !== undefined) running.force();
    // Nothing runs that could be forced: the next signal ends the process as it would any other.
    else release();
  };
  const reload = () => {
    hungUp = true;
    if (reloader !== undefined) void reloader.now('SIGHUP');
    else if (running !== undefined) complain(terminal, NOTHING_TO_RELOAD);
  };
  function release(): void {
    terminal.off('SIGTERM', stop);
    terminal.off('SIGINT', stop);
    terminal.off('SIGHUP', reload);
  }
  terminal.on('SIGTERM', stop);
  terminal.on('SIGINT', stop);
  terminal.on('SIGHUP', reload);
  return {
    release,
    attach(started: Running, reloading: Reloader | undefined): void {
      running = started;
      reloader = reloading;
      if (hungUp) reload();
      if (count > 0) running.shutdown(first);
      if (count > 1) running.force();
    },
  };
}

type OverridesRead =
  | { readonly kind: 'read'; readonly value: Overrides }
  | { readonly kind: 'bad'; readonly message: string };

function readOverrides(options: Readonly<Record<string, string>>): OverridesRead {
  const value: { listen?: Address; status?: Address; admin?: Address | false } = {};
  for (const name of ['listen', 'status', 'admin'] as const) {
    const text = options[name];
    if (text === undefined) continue;
    const address = parseAddress(text);
    if (address !== undefined) value[name] = address;
    else if (name === 'admin' && text === 'false') value.admin = false;
    else
      return {
        kind: 'bad',
        message: `--${name}: write an address such as 127.0.0.1:8080, [::1]:8080 or :8080`,
      };
  }
  return { kind: 'read', value };
}

const START_FAILURES: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is taken: stop what listens there, or choose another port',
  EACCES: 'is not allowed for this user: choose a port above 1023, or grant the right to bind it',
  EADDRNOTAVAIL: 'is no address of this machine: choose one of its own, or :PORT for all',
  ENOTFOUND: 'cannot be resolved: write an IP address',
  EAI_AGAIN: 'cannot be resolved: write an IP address',
  EAFNOSUPPORT: 'belongs to a protocol this machine has switched off: write an IPv4 address',
};

/** A listener that failed, with the option that names it; anything else in the error's own words, a bug with its stack. */
function explainStartFailure(error: unknown, config: HeadgateConfig): string {
  const { code = '', port, message, stack } = error as NodeJS.ErrnoException & { readonly port?: number };
  if (code === '') return `cannot start: ${stack ?? message}`;
  const mend = START_FAILURES[code];
  const listeners = [
    ['--listen', config.listen.address],
    ['--status', config.status],
    ...(config.admin === false ? [] : ([['--admin', config.admin.address]] as const)),
  ] as const;
  const [option, address] = listeners.find((listener) => listener[1].port === port) ?? [];
  if (mend === undefined || address === undefined) return `cannot start: ${message}`;
  return `cannot start: ${formatAddress(address)} ${mend} (${option})`;
}
