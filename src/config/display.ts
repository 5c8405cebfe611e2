/** How the URL of an upstream may be shown: in the log, at start-up, on the admin page. */

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
