/** How the address of an upstream may be shown: in the log, at start-up, on the admin page. */
import type { ProcessConfig } from './types.ts';

const DISPLAY = new WeakMap<URL, string>();
const REDACTED = '[redacted]';

/** Notes how a URL was written: a path that came out of the environment or a file may be a key. */
export function noteAuthoredUrl(url: URL, authored: string | undefined): void {
  const afterHost = authored?.replace(/^[^/]*\/\/[^/?]*/, '') ?? '';
  if (afterHost.includes('${')) DISPLAY.set(url, `${url.origin}/${REDACTED}`);
}

/** The URL without the values of its query, and without a path that may be a secret. Use it wherever a URL is shown. */
export function displayUrl(url: URL): string {
  const noted = DISPLAY.get(url);
  if (noted !== undefined) return noted;
  const query = [...url.searchParams.keys()].map((key) => `${encodeURIComponent(key)}=${REDACTED}`).join('&');
  return query === '' ? url.href : `${url.origin}${url.pathname}?${query}`;
}

const EXPANDED_ARGS = new WeakMap<ProcessConfig, ReadonlySet<number>>();

/** Notes which arguments came out of the environment or a file: each of them may be a key. */
export function noteExpandedArgs(process: ProcessConfig, isExpanded: (index: number) => boolean): void {
  EXPANDED_ARGS.set(process, new Set([...process.args.keys()].filter(isExpanded)));
}

/** The arguments without those that may be a secret. Use it wherever they are shown. */
export function displayArgs(process: ProcessConfig): readonly string[] {
  const expanded = EXPANDED_ARGS.get(process);
  return process.args.map((arg, index) => (expanded?.has(index) === true ? REDACTED : arg));
}

/** What a process was given and nobody may see: it may well say it itself. */
export function secretsOf(process: ProcessConfig): readonly string[] {
  const expanded = EXPANDED_ARGS.get(process);
  return [
    ...Object.values(process.env).map((value) => value.reveal()),
    ...process.args.filter((_, index) => expanded?.has(index) === true),
  ];
}
