/** The JSON of the admin port, and the token for it: kept for as long as the tab is open, and sent nowhere else. */

const TOKEN = 'headgate-admin-token';
/** Longer than the gateway takes to answer for itself; what asks upstreams has none. */
const WAIT_MS = 8_000;

export type Got<T> =
  | { readonly kind: 'ok'; readonly value: T }
  /** The port wants a token, or another one. */
  | { readonly kind: 'unauthorized' }
  /** `message`: what the gateway said. */
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'unreachable' };

export function keepToken(token: string): void {
  sessionStorage.setItem(TOKEN, token);
}

export function forgetToken(): void {
  sessionStorage.removeItem(TOKEN);
}

export function keptToken(): string | null {
  return sessionStorage.getItem(TOKEN);
}

export function get<T>(path: string): Promise<Got<T>> {
  return ask(path, { signal: AbortSignal.timeout(WAIT_MS) });
}

export function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<Got<T>> {
  return ask(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
    ...(signal !== undefined && { signal }),
  });
}

async function ask<T>(path: string, init: RequestInit): Promise<Got<T>> {
  const token = keptToken();
  const headers = { ...init.headers, ...(token !== null && { Authorization: `Bearer ${token}` }) };
  try {
    const response = await fetch(path, { ...init, headers, cache: 'no-store', credentials: 'omit' });
    if (response.status === 401) return { kind: 'unauthorized' };
    const value = (await response.json()) as T & { error?: unknown };
    if (response.ok) return { kind: 'ok', value };
    return { kind: 'refused', message: String(value.error ?? response.status) };
  } catch {
    return { kind: 'unreachable' };
  }
}
