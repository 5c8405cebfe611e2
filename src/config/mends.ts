/** Checks of single texts: each says what to write instead, or nothing when the text is fine. Pure. */
import { isIP } from 'node:net';
import type { Mend } from './fields.ts';
import { HEADER_NAME, refusedHeader } from './headers.ts';

const CONTROL = /[\u0000-\u001f\u007f]/;

/** Secrets below this are guessed faster than they are rotated. */
const MIN_SECRET_BYTES = 32;

export const secretMend: Mend = (text) =>
  Buffer.byteLength(text) < MIN_SECRET_BYTES
    ? `write at least ${MIN_SECRET_BYTES} bytes, for example the output of: openssl rand -base64 32`
    : undefined;

/** A user, or a group of servers. */
export const wordMend: Mend = (text) =>
  /\s/.test(text) || CONTROL.test(text) ? 'write it without white space and control characters' : undefined;

/** Each key carries its prefix: a long one would cost more than what it tells apart. */
const MAX_PREFIX_CHARS = 64;

/** In braces Redis Cluster sees what keeps keys together: a prefix with them would put everything on one node. */
export const keyPrefixMend: Mend = (text) => {
  if (text.length > MAX_PREFIX_CHARS) return `write at most ${MAX_PREFIX_CHARS} characters`;
  return /^[\x21-\x7e]+$/.test(text) && !/[{}]/.test(text)
    ? undefined
    : 'write visible ASCII characters without spaces and braces, such as "headgate:"';
};

/** More databases than anybody sets up: what is above it is a mistake. */
export const MAX_REDIS_DB = 65_535;

/** Only what every reader of such a URL understands alike: host, port, database, user, password. */
export const redisUrlMend: Mend = (text) => {
  const example = 'redis://127.0.0.1:6379/0';
  const [, authority, rest = ''] = /^rediss?:\/\/([^/?]*)(.*)$/is.exec(text) ?? [];
  if (authority === undefined)
    return `write a URL such as ${example}, with rediss:// for TLS; sentinel and cluster have keys of their own`;
  if (/[\s#]/.test(text) || rest.includes('@'))
    return 'in a user or password write white space, "/", "?", "#" as %20, %2F, %3F, %23; elsewhere remove them';
  if (/^:|^$/.test(authority.slice(authority.lastIndexOf('@') + 1)))
    return `name the host, such as ${example}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !isHost(url.hostname))
    return `write it as redis://user:password@host:port/db, such as ${example}`;
  if (url.port === '0') return 'write the port of the server: 0 is none';
  if (rest.includes('?'))
    return 'remove the query (?…): the database is the path, and the rest has keys of its own';
  if (!/^(\/|\/[0-9]{1,5})?$/.test(rest) || Number(rest.slice(1)) > MAX_REDIS_DB)
    return 'write the number of the database as the path, such as /0';
  if (url.username !== '' && url.password === '')
    return 'write the password behind a colon, redis://:password@host or redis://user:password@host: a name alone lets nobody in';
  if (!isDecodable(url.username) || !isDecodable(url.password)) return 'write a "%" in a password as %25';
  return undefined;
};

function isHost(name: string): boolean {
  if (/^[0-9.]+$/.test(name)) return isIP(name) === 4;
  return /^\[[0-9a-f:.]+\]$/i.test(name) || /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/.test(name);
}

function isDecodable(part: string): boolean {
  try {
    return decodeURIComponent(part).length > -1;
  } catch {
    return false;
  }
}

export const tokenMend: Mend = (text) =>
  /\s/.test(text) ? 'write the token alone, without spaces: "Bearer" is put in front of it' : undefined;

/** The token is all that stands between a network and the admin port: a shorter one can be guessed. */
const MIN_ADMIN_TOKEN_BYTES = 16;

export const adminTokenMend: Mend = (text) =>
  Buffer.byteLength(text) < MIN_ADMIN_TOKEN_BYTES
    ? `write at least ${MIN_ADMIN_TOKEN_BYTES} bytes, for example the output of: openssl rand -base64 32`
    : tokenMend(text);

/** Also the `pattern` of the JSON Schema. */
export const UPSTREAM_NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/;

export const upstreamNameMend: Mend = (text) =>
  UPSTREAM_NAME.test(text)
    ? undefined
    : 'write a name of at most 63 lower-case letters, digits, "_" and "-", starting with a letter or digit';

export const upstreamUrlMend: Mend = (text) => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:\/\//i.test(text))
    return 'write an absolute URL such as http://127.0.0.1:3001/mcp';
  if (url.username !== '' || url.password !== '') {
    return 'remove the credentials from the URL; write auth: { type: header, name: Authorization, value: … } instead';
  }
  if (url.port === '0') return 'write the port of the server: 0 is none';
  if (text.includes('#')) return 'remove the fragment (#…): it never reaches a server';
  return undefined;
};

export const pathMend: Mend = (text) => {
  if (!text.startsWith('/')) return 'write a path that starts with a slash, such as /mcp';
  if (/[?#]/.test(text)) return 'write the path alone, without a query or fragment';
  if (text !== '/' && text.endsWith('/'))
    return 'remove the slash at the end: /mcp/ would be another path than /mcp';
  if (text !== '/' && !/^(\/[A-Za-z0-9._~-]+)+$/.test(text)) {
    return 'write letters, digits, ".", "_", "~" and "-" between single slashes';
  }
  if (text.split('/').some((segment) => segment === '.' || segment === '..'))
    return 'write the path without . and ..';
  return undefined;
};

export const hostMend: Mend = (text) => {
  if (text.includes('*')) return 'write each host name in full: wildcards are not supported';
  const match = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?$/.exec(text);
  if (match === null || Number(match[2] ?? 0) > 65_535)
    return 'write a host as in the Host header: mcp.example or mcp.example:8443';
  return undefined;
};

export const originMend: Mend = (text) => {
  if (text.includes('*') || text === 'null')
    return 'write each origin in full: wildcards and null would let any page in';
  if (
    !/^[a-z][a-z0-9+.-]*:\/\/[^/?#@\s\\]+$/.test(text) ||
    (/^https?:/.test(text) && originOf(text) !== text)
  ) {
    return 'write it as browsers send it: scheme://host[:port] in lower case, without a path, a slash at the end or the default port';
  }
  return undefined;
};

function originOf(text: string): string | undefined {
  return URL.canParse(text) ? new URL(text).origin : undefined;
}

export const proxyMend: Mend = (text) => {
  const [ip = '', prefix, ...rest] = text.split('/');
  const family = isIP(ip);
  const bits = prefix === undefined ? undefined : /^[0-9]{1,3}$/.test(prefix) ? Number(prefix) : Number.NaN;
  if (family === 0 || rest.length > 0 || (bits !== undefined && !(bits <= (family === 4 ? 32 : 128)))) {
    return 'write an IP address or a network such as 10.0.0.0/8';
  }
  if (bits === 0) return 'write the networks of your proxies: /0 would believe X-Forwarded-* of every client';
  return undefined;
};

export const forwardHeaderMend: Mend = (text) => {
  if (text.toLowerCase() === 'authorization')
    return 'write auth: { type: forward } instead: it also passes challenges back';
  return headerNameMend(text) ?? refusedHeader(text);
};

export const staticHeaderMend: Mend = (text) => headerNameMend(text) ?? refusedHeader(text);

export const headerNameMend: Mend = (text) =>
  HEADER_NAME.test(text) ? undefined : 'write a header name: letters, digits and hyphens';

export const paramHeaderMend: Mend = (text) =>
  headerNameMend(text) === undefined && /^mcp-param-./i.test(text)
    ? undefined
    : 'write an mcp-param-… header: rules look at no others';

/** URI literals, globs and RFC 6570 templates: only the braces are looked at here, `routing` compiles them. */
export const uriPatternMend: Mend = (text) => {
  if (CONTROL.test(text) || text.includes(' ')) return 'write the URI without spaces and control characters';
  let open = false;
  let name = '';
  for (const char of text) {
    if (char === '{' && open) return 'close each { with a } before the next one';
    if (char === '}' && (!open || name === ''))
      return open ? 'name the variable: {} is empty' : 'remove the }: no { is open';
    name = char === '{' ? '' : name + char;
    open = char === '{' || (open && char !== '}');
  }
  return open ? 'close the { with a }' : undefined;
};

export const namePatternMend: Mend = (text) =>
  CONTROL.test(text) ? 'write it without control characters' : undefined;

/** No system takes a NUL in what a process is started with. */
export const processTextMend: Mend = (text) =>
  text.includes('\u0000') ? 'write it without NUL characters' : undefined;

export const commandMend: Mend = (text) => {
  if (CONTROL.test(text)) return 'write it without control characters';
  // Whoever writes a whole command line would be told that there is no such file.
  return /^[^\s/]+\s+\S/.test(text)
    ? 'write the program alone, and what follows it as args: no shell reads this'
    : undefined;
};

export const variableNameMend: Mend = (text) =>
  /^[^\s=]+$/.test(text) && !CONTROL.test(text)
    ? undefined
    : 'write the name of a variable, such as DOCS_TOKEN, without "=" and white space';

export const methodMend: Mend = (text) =>
  /^[A-Za-z$_][A-Za-z0-9$_./-]*$/.test(text)
    ? undefined
    : 'write one method in full, such as resources/read or tools/call';
