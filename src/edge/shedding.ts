/**
 * Load shedding: new requests are refused before there is so much to do that nobody is answered in time.
 *
 * There is one loop, and whoever waits for it waits in the kernel, unseen. Two things show from here: how late a
 * timer comes, which is what each turn of each request waits on top of its own work, and how many requests are under
 * way. Refusing costs a hundredth of answering, so what is under way gets done. It begins only when the loop was late
 * for most of some seconds, and more than once: one answer of 40 MB, or one collection of garbage, is no overload.
 * It ends when hardly any of those seconds were lost: no flapping. While only a few requests are under way, others are
 * taken however late the loop is: a machine that is busy with something else would otherwise answer nobody.
 */

/** What counts: long enough for several turns of a loop that is in trouble, shorter than the 5 s a list has. */
export const WINDOW_MS = 3_000;
/** The part of the window in which nobody was answered: above it every turn is late by 150 ms, or some by seconds. */
const TOO_LATE = 0.6;
/** Below it the loop is calm again. */
const CALM = 0.2;
/** Turns that were late at all, so that a single one does not count. */
const LATE_TURNS = 3;
const LATE_MS = 100;

/** With fewer under way there is nobody in whose favour to refuse. */
export const FEW_UNDER_WAY = 8;
/** How often the loop is looked at, while there is anything to do. */
const TICK_MS = 100;

/**
 * Requests under way, listens aside. An upstream has room for 1,152 by default, in its pools and their queues; beyond
 * what eight of them can take, more would only wait, at some 20 KiB each.
 */
export const MAX_UNDER_WAY = 10_000;
/** Taken again below this. */
const RESUME_UNDER_WAY = MAX_UNDER_WAY * 0.9;

/** Whether the loop is too late, by how late each turn was. A decision over numbers; sees no clock. */
export class LateLoop {
  /** The turns of the window. *Bounded by* {@link WINDOW_MS}: none is shorter than a tick. */
  readonly #turns: { readonly lateMs: number; readonly elapsedMs: number }[] = [];
  #lateMs = 0;
  #elapsedMs = 0;
  #lateTurns = 0;
  #late = false;

  /** True from when too much of the window was lost until hardly any of it is. */
  get late(): boolean {
    return this.#late;
  }

  /** @param lateMs how late this turn was. @param elapsedMs time since the last. */
  turn(lateMs: number, elapsedMs: number): void {
    this.#turns.push({ lateMs, elapsedMs });
    this.#count(lateMs, elapsedMs, 1);
    for (let oldest = this.#turns[0]; oldest !== undefined; oldest = this.#turns[0]) {
      // Turns of seconds each would leave too few to be counted, and a loop that drowns would never be late.
      if (this.#turns.length <= LATE_TURNS || this.#elapsedMs - oldest.elapsedMs < WINDOW_MS) break;
      this.#turns.shift();
      this.#count(-oldest.lateMs, -oldest.elapsedMs, -1);
    }
    const lost = this.#lateMs / Math.max(WINDOW_MS, this.#elapsedMs);
    if (lost >= TOO_LATE && this.#lateTurns >= LATE_TURNS) this.#late = true;
    else if (lost < CALM) this.#late = false;
  }

  #count(lateMs: number, elapsedMs: number, turns: 1 | -1): void {
    this.#lateMs += lateMs;
    this.#elapsedMs += elapsedMs;
    if (Math.abs(lateMs) >= LATE_MS) this.#lateTurns += turns;
  }
}

/** Why requests are refused, in the log. */
export type Strain = 'loop-late' | 'too-many-requests';

export interface SheddingOptions {
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Requests under way, listens among them. */
  readonly openCount: () => number;
  /** Told when refusing begins, and when it ends. */
  readonly onChange: (strain: Strain | 'none', lateMs: number) => void;
}

/** One listener's. Its timer runs only while there is something to do. */
export class Shedding {
  readonly #options: SheddingOptions;
  readonly #loop = new LateLoop();
  #timer: NodeJS.Timeout | undefined;
  #turnedAt = 0;
  #listenCount = 0;
  #crowded = false;
  #strain: Strain | 'none' = 'none';

  constructor(options: SheddingOptions) {
    this.#options = options;
  }

  /** Called for each request that comes. @returns true when it should be refused. */
  arrived(): boolean {
    if (this.#timer === undefined) this.#start();
    const underWay = this.#options.openCount() - this.#listenCount;
    this.#crowded = underWay > (this.#crowded ? RESUME_UNDER_WAY : MAX_UNDER_WAY);
    this.#tell(0);
    return this.#strain !== 'none' && underWay > FEW_UNDER_WAY;
  }

  /** A listen stays open for hours and asks nothing: it does not count. @returns what ends it. */
  listening(): () => void {
    this.#listenCount++;
    return () => {
      this.#listenCount--;
    };
  }

  #start(): void {
    this.#turnedAt = this.#options.now();
    this.#timer = setInterval(() => this.#turn(), TICK_MS);
    this.#timer.unref();
  }

  #turn(): void {
    const at = this.#options.now();
    const elapsedMs = at - this.#turnedAt;
    this.#turnedAt = at;
    const lateMs = Math.max(0, elapsedMs - TICK_MS);
    this.#loop.turn(lateMs, elapsedMs);
    this.#tell(lateMs);
    if (this.#options.openCount() > this.#listenCount || this.#loop.late) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #tell(lateMs: number): void {
    const strain = this.#loop.late ? 'loop-late' : this.#crowded ? 'too-many-requests' : 'none';
    if (strain === this.#strain) return;
    this.#strain = strain;
    this.#options.onChange(strain, lateMs);
  }
}
