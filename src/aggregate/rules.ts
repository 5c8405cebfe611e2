/** The operator's word for results that carry no hints (`cache.rules`): for servers that never say for how long. */
import type { CacheRule, UpstreamConfig } from '../config/types.ts';
import { type Pattern, uriPattern } from '../routing/pattern.ts';
import type { ReadOutcome } from '../upstream/types.ts';

interface Compiled {
  readonly rule: CacheRule;
  readonly pattern: Pattern | undefined;
}

const compiled = new WeakMap<UpstreamConfig, readonly Compiled[]>();

/** An answer with hints where it has none and a rule fits: each of the two for itself, the first rule alone. */
export function hinted(
  config: UpstreamConfig,
  method: string,
  uri: string | undefined,
  outcome: ReadOutcome,
): ReadOutcome {
  if (config.cache.rules.length === 0 || outcome.kind !== 'answer' || outcome.answer.kind !== 'result')
    return outcome;
  const { answer } = outcome;
  const { ttlMs, cacheScope } = answer.hints;
  if (ttlMs !== undefined && cacheScope !== undefined) return outcome;
  const rule = rulesOf(config).find(
    (one) => one.rule.method === method && (one.pattern === undefined || one.pattern.matches(uri ?? '')),
  )?.rule;
  if (rule === undefined) return outcome;
  const hints = { ttlMs: ttlMs ?? rule.ttlMs, cacheScope: cacheScope ?? rule.scope };
  return { ...outcome, answer: { ...answer, hints } };
}

function rulesOf(config: UpstreamConfig): readonly Compiled[] {
  const known = compiled.get(config);
  if (known !== undefined) return known;
  const rules = config.cache.rules.map((rule) => ({
    rule,
    pattern: rule.resources === undefined ? undefined : uriPattern(rule.resources),
  }));
  compiled.set(config, rules);
  return rules;
}
