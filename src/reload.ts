/**
 * Takes up another configuration while the gateway runs, or keeps the last good one and says why (R44): in the log, in
 * the metrics and to whoever asked. One at a time, in the order they came.
 */
import { type Changes, compareConfigs } from './config/changes.ts';
import type { LoadResult } from './config/load.ts';
import { formatProblem } from './config/problems.ts';
import type { HeadgateConfig } from './config/types.ts';
import type { LogFields, Logger } from './observability/log.ts';
import type { Metrics } from './observability/metrics.ts';

/** What has become of a reload. */
export type ReloadOutcome = 'applied' | 'unchanged' | 'refused';

export interface ReloadDeps {
  readonly config: HeadgateConfig;
  /** Takes it up, within one turn: throws before anything has changed, or not at all. @returns when what is new is probed. */
  readonly apply: (config: HeadgateConfig, changes: Changes) => Promise<unknown>;
  readonly log: Pick<Logger, 'info' | 'warn' | 'error' | 'configure'>;
  readonly metrics: Pick<Metrics, 'reloaded'>;
}

/** Levels at which no reload is told of. */
const HIDDEN: ReadonlySet<HeadgateConfig['log']['level']> = new Set(['warn', 'error', 'silent']);
/** Problems that one line of the log tells of. */
const TOLD_PROBLEMS = 20;

export class Reloading {
  readonly #deps: ReloadDeps;
  #config: HeadgateConfig;
  #last: Promise<unknown> = Promise.resolve();
  #ended = false;

  constructor(deps: ReloadDeps) {
    this.#deps = deps;
    this.#config = deps.config;
  }

  /** What holds now. */
  get config(): HeadgateConfig {
    return this.#config;
  }

  /**
   * @param read what was made of the file, by its name.
   * @param why what the log says of the occasion, such as `SIGHUP`.
   */
  reload(read: LoadResult, file: string, why: string): Promise<ReloadOutcome> {
    const outcome = this.#last
      .then(() => this.#reload(read, file, why))
      .catch((error: unknown) => this.#refuse({ why, err: error }));
    this.#last = outcome;
    return outcome;
  }

  /** The gateway is shutting down: nothing is taken up any more. */
  end(): void {
    this.#ended = true;
  }

  async #reload(read: LoadResult, file: string, why: string): Promise<ReloadOutcome> {
    if (this.#ended) return 'refused';
    if (read.kind === 'invalid') {
      const problems = read.problems.filter(({ severity }) => severity === 'error');
      return this.#refuse({
        why,
        problems: problems.slice(0, TOLD_PROBLEMS).map((problem) => formatProblem(file, problem)),
        ...(problems.length > TOLD_PROBLEMS && { further: problems.length - TOLD_PROBLEMS }),
      });
    }
    const compared = compareConfigs(this.#config, read.config);
    if (compared.kind === 'restart') return this.#refuse({ why, needsRestart: compared.paths });
    const { log, metrics } = this.#deps;
    if (compared.kind === 'same') {
      log.info({ why }, 'configuration read again: nothing in it has changed');
      metrics.reloaded('unchanged');
      return 'unchanged';
    }
    const { log: before } = this.#config;
    let ready: Promise<unknown>;
    try {
      ready = this.#deps.apply(read.config, compared.changes);
    } catch (error) {
      return this.#refuse({ why, err: error });
    }
    this.#config = read.config;
    const { log: after } = read.config;
    // Whichever of the two lets it be seen: the operator waits for this line.
    if (HIDDEN.has(before.level)) log.configure(after);
    for (const warning of read.warnings) log.warn({ why }, formatProblem(file, warning));
    log.info({ why, ...toldOf(compared.changes) }, 'configuration reloaded');
    log.configure(after);
    metrics.reloaded('applied');
    await ready;
    return 'applied';
  }

  #refuse(fields: LogFields): 'refused' {
    this.#deps.log.error(fields, 'configuration not taken up: the last good one stays');
    this.#deps.metrics.reloaded('refused');
    return 'refused';
  }
}

/** Only what there is to tell. */
function toldOf({ upstreams, routes, settings }: Changes): LogFields {
  const lists: readonly (readonly [string, readonly string[]])[] = [
    ...Object.entries(upstreams).map(([what, names]) => [`upstreams${capital(what)}`, names] as const),
    ...Object.entries(routes).map(([what, paths]) => [`routes${capital(what)}`, paths] as const),
    ['settings', settings],
  ];
  return Object.fromEntries(lists.filter(([, names]) => names.length > 0));
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
