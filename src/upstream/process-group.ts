/** A process and all it started: signals reach every one of them, and none outlives the gateway's own end. */

/** Who gets SIGKILL is gone at once; only a body that nobody fetches is still counted. */
const KILLED_MS = 500;

/** Between two looks at what is left of a group. */
const LOOK_MS = 25;

const alive = new Set<ProcessGroup>();

/** Standard input closes when the gateway ends, however hard; whoever does not read it would stay. */
process.on('exit', () => {
  for (const group of alive) group.signal('SIGKILL');
});

/** The group that a process leads. */
export class ProcessGroup {
  readonly #pid: number;

  constructor(pid: number) {
    this.#pid = pid;
    alive.add(this);
  }

  /** Sends a signal to all of them; 0 only looks. @returns whether anybody was there. */
  signal(signal: NodeJS.Signals | 0): boolean {
    // A group's number is given to nobody else while one of it lives; behind the last one's end nothing is sent.
    if (!alive.has(this)) return false;
    try {
      return process.kill(-this.#pid, signal);
    } catch {
      return false;
    }
  }

  /** The leader is gone: ends the rest, at last by force. Resolves when nobody is left, or can be ended. */
  async sweep(patienceMs: number): Promise<void> {
    if (this.signal('SIGTERM')) await this.#empty(patienceMs);
    if (this.signal('SIGKILL')) await this.#empty(KILLED_MS);
    alive.delete(this);
  }

  #empty(withinMs: number): Promise<void> {
    return new Promise((resolve) => {
      const until = performance.now() + withinMs;
      const look = (): void => {
        if (!this.signal(0) || performance.now() >= until) resolve();
        else setTimeout(look, LOOK_MS);
      };
      look();
    });
  }
}
