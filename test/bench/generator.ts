/** A load generator on plain sockets: keep-alive, one request at a time on each, every answer compared whole. */
import { connect, type Socket } from 'node:net';
import { type Job, type Loaded, takeSerials } from './job.ts';
import { quantile } from './stats.ts';
import { problemOf, SERIAL } from './wire.ts';

/** A connection that hears nothing for this long has failed. */
const SILENCE_MS = 30_000;

/** What all connections of a job share. */
interface Run {
  readonly job: Job;
  readonly endsAt: number;
  left: number;
  count: number;
  wrong: number;
  why: string | undefined;
  next: number;
  readonly latencies: number[];
}

export async function generate(job: Job): Promise<Loaded> {
  const { until } = job;
  const startedAt = performance.now();
  const run: Run = {
    job,
    endsAt: 'seconds' in until ? startedAt + until.seconds * 1000 : Number.POSITIVE_INFINITY,
    left: 'count' in until ? until.count : Number.POSITIVE_INFINITY,
    count: 0,
    wrong: 0,
    why: undefined,
    next: 0,
    latencies: [],
  };
  await Promise.all(Array.from({ length: job.connections }, () => new Connection(run).done));
  const seconds = (performance.now() - startedAt) / 1000;
  const sorted = run.latencies.sort((a, b) => a - b);
  const { count, wrong, why } = run;
  return { count, wrong, why, seconds, p50Us: quantile(sorted, 0.5), p99Us: quantile(sorted, 0.99) };
}

class Connection {
  readonly done: Promise<void>;
  readonly #run: Run;
  readonly #socket: Socket;
  #finish: () => void = () => {};
  #chunks: Buffer[] = [];
  #bytes = 0;
  #head = '';
  #bodyAt = 0;
  /** Bytes of head and body; -1: chunked. */
  #wanted = 0;
  #sentAt = 0;

  constructor(run: Run) {
    this.#run = run;
    this.done = new Promise((resolve) => {
      this.#finish = resolve;
    });
    this.#socket = connect(run.job.port, '127.0.0.1');
    this.#socket.setNoDelay(true);
    this.#socket.setTimeout(SILENCE_MS, () => this.#broken('silence'));
    this.#socket.on('connect', () => this.#send());
    this.#socket.on('data', (chunk) => this.#data(chunk));
    this.#socket.on('error', (error) => this.#broken(error.message));
    this.#socket.on('close', () => this.#broken('the connection was closed'));
  }

  #send(): void {
    const run = this.#run;
    const { requests } = run.job;
    if (run.left <= 0 || performance.now() >= run.endsAt) return this.#end();
    run.left--;
    const text = requests[run.next++ % requests.length] as string;
    this.#chunks = [];
    this.#bytes = 0;
    this.#head = '';
    this.#sentAt = performance.now();
    this.#socket.write(
      text.includes(SERIAL) ? text.replaceAll(SERIAL, String(takeSerials(1))) : text,
      'latin1',
    );
  }

  #data(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#head === '' && !this.#readHead()) return;
    if (this.#wanted < 0 ? !endsChunks(chunk) : this.#bytes < this.#wanted) return;
    const whole = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks);
    const rest = whole.subarray(this.#bodyAt);
    const body = this.#wanted < 0 ? unchunked(rest) : rest;
    const run = this.#run;
    run.count++;
    run.latencies.push((performance.now() - this.#sentAt) * 1000);
    this.#judge(problemOf(this.#head, body, run.job.expected));
    this.#send();
  }

  #readHead(): boolean {
    const so_far = this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks);
    const end = so_far.indexOf('\r\n\r\n');
    if (end < 0) return false;
    this.#head = so_far.toString('latin1', 0, end);
    this.#bodyAt = end + 4;
    const length = /\r\ncontent-length: (\d+)/i.exec(this.#head)?.[1];
    this.#wanted = length === undefined ? -1 : end + 4 + Number(length);
    return true;
  }

  #judge(problem: string | undefined): void {
    if (problem === undefined) return;
    this.#run.wrong++;
    this.#run.why ??= problem;
  }

  #broken(why: string): void {
    this.#judge(why);
    this.#end();
  }

  #end(): void {
    this.#socket.removeAllListeners('close');
    this.#socket.destroy();
    this.#finish();
  }
}

const LAST_CHUNK = Buffer.from('0\r\n\r\n');

function endsChunks(chunk: Buffer): boolean {
  // A last chunk cut in two would be missed; loopback hands over what was written at once.
  return chunk.length >= 5 && chunk.subarray(chunk.length - 5).equals(LAST_CHUNK);
}

/** Takes the chunks of a body apart. */
export function unchunked(coded: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const end = coded.indexOf('\r\n', at);
    const size = Number.parseInt(coded.toString('latin1', at, end), 16);
    if (end < 0 || Number.isNaN(size) || size === 0) break;
    parts.push(coded.subarray(end + 2, end + 2 + size));
    at = end + 2 + size + 2;
  }
  return Buffer.concat(parts);
}
