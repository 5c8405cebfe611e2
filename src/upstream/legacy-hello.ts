/** What servers of an older era say of themselves. *Never* I/O. */
import { tailMembers } from '../protocol/answer.ts';
import { memberOf, objectMembers, stringValue, textOf } from '../protocol/json.ts';

/** What a server of an older era says of itself. */
export interface Hello {
  readonly version: string;
  /** JSON text of each capability. */
  readonly capabilities: ReadonlyMap<string, string>;
  /** JSON text. */
  readonly instructions: string | undefined;
}

/** Reads the result of `initialize`. */
export function readHello(tail: Uint8Array): Hello | undefined {
  const members = tailMembers(tail);
  const version = memberOf(members, 'protocolVersion');
  const capabilities = memberOf(members, 'capabilities');
  const name = version && stringValue(tail, version);
  const entries = capabilities && objectMembers(tail, capabilities.start);
  if (name === undefined || entries === undefined) return undefined;
  const instructions = memberOf(members, 'instructions');
  const isText = instructions !== undefined && stringValue(tail, instructions) !== undefined;
  return {
    version: name,
    capabilities: new Map(entries.map((entry) => [entry.key, textOf(tail, entry)])),
    instructions: isText ? textOf(tail, instructions) : undefined,
  };
}
