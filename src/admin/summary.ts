/** What `serve` prints once it listens: where, in front of whom, and a line to try. */
import type { Standing } from '../aggregate/standing.ts';
import type { HeadgateConfig, UpstreamConfig } from '../config/types.ts';
import type { RouteRuntime } from '../pipeline.ts';
import { META_CAPABILITIES, META_VERSION } from '../protocol/meta.ts';
import { printable } from './printable.ts';

export interface SummaryInput {
  readonly config: HeadgateConfig;
  /** `admin` where that port is open. */
  readonly addresses: { readonly mcp: string; readonly status: string; readonly admin?: string };
  readonly routes: readonly RouteRuntime[];
  readonly version: string;
  readonly revision: string;
}

/** The start-up summary, for people; the `listening` lines are stable for scripts. */
export function startupSummary({ addresses, routes, version, revision }: SummaryInput): string {
  const lines = [
    `headgate ${version}  MCP ${revision}`,
    `listening  mcp     ${addresses.mcp}`,
    `listening  status  ${addresses.status}`,
    ...(addresses.admin === undefined ? [] : [`listening  admin   ${addresses.admin}`]),
  ];
  for (const route of routes) {
    lines.push(`route      ${route.config.path}`);
    for (const member of route.members) {
      const name = member.config.name.padEnd(12);
      lines.push(
        `upstream   ${name}  ${describe(route.discovery.standing(member.rank), member.config.protocol)}`,
      );
    }
  }
  const first = routes[0];
  if (first !== undefined) lines.push('try', `  ${curl(`${addresses.mcp}${first.config.path}`, revision)}`);
  return `${lines.join('\n')}\n`;
}

function describe(standing: Standing, protocol: UpstreamConfig['protocol']): string {
  switch (standing.kind) {
    case 'seen': {
      const { versions, translated, capabilities, assumed } = standing.seen;
      const speaks = translated === undefined ? versions.join(', ') : `${translated} (translated)`;
      const offers = assumed ? '(offers what each caller may see)' : [...capabilities.keys()].join(' ');
      return printable(`up  ${speaks}  ${offers}`, MAX_ABOUT);
    }
    case 'unseen':
      return printable(`not seen yet (${standing.why})`, MAX_ABOUT);
    case 'legacy':
      return printable(
        protocol === 'modern'
          ? `speaks an older revision (it answered ${standing.why}): write protocol: auto to have it translated`
          : `speaks other revisions only (it answered ${standing.why})`,
        MAX_ABOUT,
      );
  }
}

/** Longest text about one upstream. */
const MAX_ABOUT = 300;

function curl(url: string, revision: string): string {
  const meta = { [META_VERSION]: revision, [META_CAPABILITIES]: {} };
  const body = { jsonrpc: '2.0', id: 1, method: 'resources/list', params: { _meta: meta } };
  return [
    `curl -s ${url}`,
    `-H 'Content-Type: application/json'`,
    `-H 'Accept: application/json, text/event-stream'`,
    `-H 'MCP-Protocol-Version: ${revision}'`,
    `-H 'Mcp-Method: resources/list'`,
    `-d '${JSON.stringify(body)}'`,
  ].join(' ');
}
