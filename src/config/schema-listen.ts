/** The listeners: MCP traffic, status, admin. */
import { z } from 'zod';
import { address, count, duration, headerSecret, list, mapping, say, size, text } from './fields.ts';
import * as mend from './mends.ts';

/** Where the three listeners bind when the file does not say. */
export const DEFAULT_ADDRESSES = {
  listen: '127.0.0.1:8080',
  status: '127.0.0.1:9902',
  admin: '127.0.0.1:9901',
} as const;

const limits = mapping(
  {
    body: size('1KiB', '1GiB').prefault('4MiB').meta({
      description: 'Largest request body that is read whole: lists, reads, completions. Beyond it: 413.',
    }),
    streamedBody: size('1KiB', '1024GiB').optional().meta({
      description:
        'Largest request body that is streamed through: `tools/call`, `prompts/get`. Absent: no limit.',
    }),
    headers: size('1KiB', '1MiB').prefault('32KiB').meta({
      description: 'Largest block of request headers. Beyond it: 431.',
    }),
    headerCount: count(10, 2000).default(200).meta({ description: 'Most request headers. Beyond it: 431.' }),
    requestTimeout: duration('100ms', '1h').prefault('30s').meta({
      description: 'Time in which the headers and the whole read body must have arrived. Beyond it: 408.',
    }),
    bodyIdle: duration('100ms', '1h').prefault('30s').meta({
      description: 'Longest pause while a body arrives.',
    }),
  },
  'write a mapping of limits, such as { body: 4MiB }',
);

const listenObject = mapping(
  {
    address: address()
      .prefault(DEFAULT_ADDRESSES.listen)
      .meta({
        description: 'Where MCP clients connect. `:8080` is every interface, port 0 a free one.',
        examples: ['0.0.0.0:8080', '[::1]:8080'],
      }),
    hosts: list(text('host', 'write a host such as mcp.example', mend.hostMend), 'write a list of hosts', 100)
      .default([])
      .meta({
        description:
          'Allowed `Host` values; one without a port allows every port. Empty: loopback names when bound to loopback, any otherwise.',
        examples: [['mcp.example']],
      }),
    origins: list(
      text('origin', 'write an origin such as https://app.example', mend.originMend),
      'write a list of origins',
      100,
    )
      .default([])
      .meta({
        description:
          'Allowed `Origin` values, exact; CORS answers follow them. Empty: loopback origins when bound to loopback, none otherwise. A request without `Origin` passes.',
        examples: [['https://app.example']],
      }),
    limits: limits.prefault({}).meta({ description: 'Limits of requests.' }),
    trustedProxies: list(
      text('network', 'write a network such as 10.0.0.0/8', mend.proxyMend),
      'write a list of networks',
      100,
    )
      .default([])
      .meta({
        description: 'Addresses and networks (CIDR) whose `X-Forwarded-*` is believed.',
        examples: [['10.0.0.0/8']],
      }),
  },
  'write a mapping, such as { address: "127.0.0.1:8080" }',
);

/** Where MCP clients connect. */
export const listenSchema = z.union([address(), listenObject], {
  error: say('write an address such as 127.0.0.1:8080, or a mapping such as { address: "127.0.0.1:8080" }'),
});

/** Where probes and scrapes connect. */
export const statusSchema = address();

/** How to give the admin port its token. */
export const ADMIN_TOKEN = `{ address: "0.0.0.0:9901", token: "\${file:/run/secrets/headgate-admin}" }`;
const ADMIN_HINT = `write an address such as 127.0.0.1:9901, false, or ${ADMIN_TOKEN}`;

const adminObject = mapping(
  {
    address: address()
      .prefault(DEFAULT_ADDRESSES.admin)
      .meta({ description: 'Where operators connect. Beyond loopback a token is required.' }),
    token: headerSecret(`write the token, such as \${file:/run/secrets/headgate-admin}`, mend.adminTokenMend)
      .optional()
      .meta({ description: 'Every request must bring it, as `Authorization: Bearer …`.' }),
  },
  ADMIN_HINT,
);

/** Where operators connect. */
export const adminSchema = z.union([address(ADMIN_HINT), z.literal(false), adminObject], {
  error: say(ADMIN_HINT),
});

export type AuthoredAdmin = z.output<typeof adminSchema>;
export type AuthoredListen = z.output<typeof listenSchema>;
