/** `headgate healthcheck`: what a container without curl asks. */
import { get } from 'node:http';
import { type CommandInput, complain, EXIT, type Terminal } from './terminal.ts';

const DEFAULT_URL = 'http://127.0.0.1:9902/readyz';
/** Orchestrators give a probe a second or few; a gateway that needs longer is not ready. */
const TIMEOUT_MS = 2_000;

export async function healthcheck({ options }: CommandInput, terminal: Terminal): Promise<number> {
  const text = options.url ?? DEFAULT_URL;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'http:') {
    complain(terminal, `--url: write an http URL such as ${DEFAULT_URL}`);
    return EXIT.badCommandLine;
  }
  const answer = await ask(url);
  if (answer.kind === 'status' && answer.status === 200) {
    terminal.stdout.write('ready\n');
    return EXIT.fine;
  }
  const reason = answer.kind === 'status' ? `answered ${answer.status}` : answer.reason;
  complain(terminal, `not ready: ${url.host} ${reason}`);
  return EXIT.failed;
}

type Answer =
  | { readonly kind: 'status'; readonly status: number }
  | { readonly kind: 'none'; readonly reason: string };

function ask(url: URL): Promise<Answer> {
  return new Promise((resolve) => {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const request = get(url, { signal, agent: false }, (response) => {
      resolve({ kind: 'status', status: response.statusCode ?? 0 });
      response.destroy();
    });
    request.on('error', (error: NodeJS.ErrnoException) => {
      const reason = signal.aborted
        ? `did not answer within ${TIMEOUT_MS} ms`
        : `cannot be reached (${error.code ?? error.message})`;
      resolve({ kind: 'none', reason });
    });
  });
}
