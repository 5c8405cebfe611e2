/** Reads the configuration again when its file changes, or when it is told to, and hands it to the running gateway. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type FileWatch, watchFiles } from '../config/watch.ts';
import type { Running } from '../gateway.ts';
import type { ConfigFile, Reading } from './source.ts';

/** A file that is no good may be half written: it is read once more after so long, and again while it still changes. */
const SETTLE_MS = 300;
const MAX_SETTLES = 10;

export class Reloader {
  readonly #file: ConfigFile;
  readonly #running: Pick<Running, 'reload'>;
  readonly #watch: FileWatch;
  /** What was tried last. */
  #last: Reading;
  #reading = false;
  #again = false;
  #closed = false;

  constructor(file: ConfigFile, running: Pick<Running, 'reload'>) {
    this.#file = file;
    this.#running = running;
    this.#last = file.first;
    this.#watch = watchFiles(file.first.files, () => void this.#changed());
  }

  /** Reads it at once, whether it has changed or not. @param why the occasion. */
  async now(why: string): Promise<void> {
    await this.#hand(this.#file.read(), why);
  }

  close(): void {
    this.#closed = true;
    this.#watch.close();
  }

  /** One at a time: what changes meanwhile is read once more. */
  async #changed(): Promise<void> {
    this.#again = true;
    if (this.#reading) return;
    this.#reading = true;
    while (this.#again && !this.#closed) {
      this.#again = false;
      const reading = await this.#settled();
      if (!this.#closed && reading !== undefined) await this.#hand(reading, 'the file has changed');
    }
    this.#reading = false;
  }

  /** What there is to try; undefined: what was tried last is still what there is. Nothing is read twice to the same end. */
  async #settled(): Promise<Reading | undefined> {
    let reading: Reading | undefined;
    for (let count = 0; ; count++) {
      const before = reading ?? this.#last;
      const isSame = this.#file.digest(before.files) === before.digest;
      if (isSame || this.#closed) return reading;
      reading = this.#file.read();
      if (reading.digest === this.#last.digest) return undefined;
      if (reading.result.kind === 'ok' || count >= MAX_SETTLES) return reading;
      await sleep(SETTLE_MS, undefined, { ref: false });
    }
  }

  async #hand(reading: Reading, why: string): Promise<void> {
    this.#last = reading;
    this.#watch.follow(reading.files);
    await this.#running.reload(reading.result, this.#file.name, why);
  }
}
