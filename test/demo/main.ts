/**
 * `npm run demo`: three MCP servers, Headgate in front of them, and a walk through it with the official client.
 *
 * Every line that claims something is checked; the exit code is 1 when one did not hold. `--keep` stays until Ctrl-C;
 * `--real` takes published servers instead, fetched with npx.
 */
import { parseArgs } from 'node:util';
import { type Gateway, projectRoot, startGateway } from './gateway.ts';
import { runReal } from './real.ts';
import { colourFor, createReport, type Report } from './report.ts';
import * as city from './servers/city.ts';
import * as library from './servers/library.ts';
import * as notes from './servers/notes.ts';
import type { DemoServer } from './servers/serve.ts';
import { type Servers, walk } from './walk.ts';

const root = projectRoot(import.meta.dirname);

/** What to undo, newest first: whatever was opened registers its end here at once. */
type Cleanup = Array<() => Promise<unknown>>;

async function main(): Promise<number> {
  const options = readOptions();
  if (options === undefined) return 2;
  const report = createReport({
    write: (line) => console.log(line),
    colour: colourFor(process.stdout, process.env),
  });
  const interrupted = new AbortController();
  const signalled = new Promise<NodeJS.Signals>((done) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.once(signal, () => {
        interrupted.abort();
        done(signal);
      });
    }
  });

  const cleanup: Cleanup = [];
  try {
    const demo = options.real
      ? runReal(report, root, cleanup, interrupted.signal)
      : runDemo(report, cleanup, interrupted.signal);
    demo.catch(() => undefined); // after a signal nobody waits for it any more
    const ended = await Promise.race([demo, signalled]);
    if (typeof ended === 'string') return ended === 'SIGINT' ? 130 : 143;
    if (!options.keep) {
      const code = await ended.stop();
      report.claim('the gateway drained and ended with exit code 0', code === 0, `exit code ${code}`);
    }
    report.line('');
    report.line(`${report.passed} checks passed, ${report.failed} failed`);
    if (options.keep) {
      report.line(`The demo stays up at ${ended.mcp}/mcp, the curl lines work. Ctrl-C ends it.`);
      await signalled;
    } else {
      report.line('The curl lines work while the demo runs: npm run demo -- --keep');
    }
    return report.failed === 0 ? 0 : 1;
  } catch (error) {
    console.error(`demo: ${error instanceof Error ? error.message : String(error)}`);
    return 1;
  } finally {
    for (const undo of cleanup.reverse()) await undo().catch((error: unknown) => console.error(error));
  }
}

function readOptions(): { keep: boolean; real: boolean } | undefined {
  const flag = { type: 'boolean', default: false } as const;
  try {
    return parseArgs({ options: { keep: flag, real: flag } }).values;
  } catch (error) {
    console.error(`demo: ${(error as Error).message}\nusage: npm run demo [-- --keep --real]`);
    return undefined;
  }
}

async function runDemo(report: Report, cleanup: Cleanup, signal: AbortSignal): Promise<Gateway> {
  const open = async (start: () => Promise<DemoServer>): Promise<DemoServer> => {
    const server = await start();
    cleanup.push(() => server.close());
    return server;
  };
  const servers: Servers = {
    library: await open(library.start),
    city: await open(city.start),
    notes: await open(notes.start),
  };
  signal.throwIfAborted();
  const gateway = await startGateway({
    root,
    args: ['serve', '-c', 'config/demo.yaml'],
    env: { LIBRARY_URL: servers.library.url, CITY_URL: servers.city.url, NOTES_URL: servers.notes.url },
    signal,
  });
  cleanup.push(() => gateway.stop());
  signal.throwIfAborted();

  report.heading('Headgate: three MCP servers, one endpoint');
  report.row('library', `${servers.library.url}  ${library.DOCUMENT_COUNT} documents, public for 60 s`);
  report.row('city', `${servers.city.url}  cities and weather, weather public for 5 s`);
  report.row('notes', `${servers.notes.url}  private notes of alice and bob, 30 s`);
  report.row('gateway', `${gateway.mcp}/mcp  from config/demo.yaml`);
  report.row('status', `${gateway.status}  /livez /readyz /metrics`);
  await walk({ report, servers, endpoint: new URL('/mcp', gateway.mcp), status: gateway.status });
  report.line('');
  return gateway;
}

process.exitCode = await main();
