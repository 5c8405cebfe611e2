/** What the schema found → problems with a place and a mend. */
import type { z } from 'zod';
import type { Document } from './document.ts';
import { notYet } from './later.ts';
import { nearest } from './nearest.ts';
import { formatPath, type Path, type Problem, quote } from './problems.ts';

/** A finding at its path; `place` says whether its key or its value is at fault. */
export interface Finding {
  readonly path: Path;
  readonly place: 'key' | 'value';
  readonly message: string;
}

/**
 * The findings behind the issues of one parse: unions reduced to the form that was meant, unknown keys one by one,
 * one finding for each value.
 */
export function findings(issues: readonly z.core.$ZodIssue[], data: unknown): readonly Finding[] {
  // Zod goes on to count the entries of a list that is none; the first finding is the one that helps.
  const perPath = new Map<string, Finding>();
  for (const finding of flatten(issues, data, [])) {
    const key = JSON.stringify(finding.path);
    if (!perPath.has(key)) perPath.set(key, finding);
  }
  return [...perPath.values()];
}

function flatten(issues: readonly z.core.$ZodIssue[], data: unknown, base: Path): readonly Finding[] {
  return issues.flatMap((issue) => {
    const path: Path = [...base, ...(issue.path as (string | number)[])];
    switch (issue.code) {
      case 'unrecognized_keys':
        return issue.keys.map((key) => unknownKey([...path, key], issue.message.split(' ')));
      case 'invalid_key':
        return [{ path, place: 'key' as const, message: issue.issues[0]?.message ?? issue.message }];
      case 'invalid_union': {
        const meant = issue.errors.find((branch) => !branch.some(isOtherForm));
        return meant === undefined ? [value(path, issue.message)] : flatten(meant, data, path);
      }
      default:
        return [value(path, issue.message)];
    }
  });
}

/** A finding as a problem at its place. Values of failed expansions have their problem already. */
export function toProblem(finding: Finding, document: Document): Problem {
  const spot = finding.place === 'key' ? document.atKey(finding.path) : document.at(finding.path);
  return { ...spot, path: formatPath(finding.path), message: finding.message, severity: 'error' };
}

/** True when `path` is `holder` or inside it. */
export function isWithin(path: Path, holder: Path): boolean {
  return holder.length <= path.length && holder.every((segment, index) => segment === path[index]);
}

/** The value at a path of plain data. */
export function valueAt(data: unknown, path: Path): unknown {
  let current = data;
  for (const segment of path) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, segment)) return undefined;
    current = (current as Record<string | number, unknown>)[segment];
  }
  return current;
}

function value(path: Path, message: string): Finding {
  return { path, place: 'value', message };
}

function unknownKey(path: Path, known: readonly string[]): Finding {
  const key = String(path.at(-1));
  const meant = nearest(key, known);
  const hint = meant === undefined ? `known here: ${known.join(', ')}` : `did you mean ${quote(meant)}?`;
  return { path, place: 'key', message: notYet(path) ?? `unknown key ${quote(key)}; ${hint}` };
}

/** A branch of a union that does not even take this type of value was not meant. */
function isOtherForm(issue: z.core.$ZodIssue): boolean {
  return issue.path.length === 0 && (issue.code === 'invalid_type' || issue.code === 'invalid_value');
}
