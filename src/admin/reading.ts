/** One resource, read as a client would, and what is shown of it. What it says is *never* acted upon. */
import type { RouteRuntime } from '../pipeline.ts';
import type { Signal } from '../protocol/signal.ts';
import { type Asker, askAnonymously, type Heard, MAX_URI_CHARS, recordOf, textIn } from './ask.ts';
import { type Catalogue, hintsOf } from './catalogue.ts';
import type { Content, ReadAnswer } from './page/contract.ts';
import { cut } from './printable.ts';

/** What is shown of all contents together: text in characters, images in bytes. */
export const MAX_SHOWN = 1 << 20;
/** Contents of one resource that are shown. */
export const MAX_CONTENTS = 100;
const MAX_TYPE_CHARS = 200;
/** Of what is neither text nor image, the first bytes are shown. */
const HEX_BYTES = 256;

/** `POST /api/read`. */
export async function readOne(
  asker: Asker,
  catalogue: Catalogue,
  route: RouteRuntime,
  uri: string,
  signal: Signal,
): Promise<ReadAnswer> {
  const question = { route: route.config.path, method: 'resources/read', name: uri, params: { uri } };
  const [heard, templates] = await Promise.all([
    askAnonymously(asker, question, signal),
    catalogue.templates(route),
  ]);
  const template = templates.fitting(uri);
  const { upstream } = heard.facts;
  return {
    how: heard.how,
    ...(upstream !== undefined && { upstream }),
    ...(template !== undefined && { template }),
    ...(heard.kind === 'result' && hintsOf(heard.result)),
    bytes: heard.bytes,
    outcome: outcomeOf(heard),
  };
}

function outcomeOf(heard: Heard): ReadAnswer['outcome'] {
  switch (heard.kind) {
    case 'trouble':
      return { kind: 'trouble', trouble: heard.trouble };
    case 'large':
      return { kind: 'large' };
    case 'result': {
      const { resultType, contents } = heard.result;
      if (resultType === 'input_required') return { kind: 'input-required' };
      return { kind: 'contents', ...shown(Array.isArray(contents) ? contents : []) };
    }
  }
}

function shown(contents: readonly unknown[]): { contents: readonly Content[]; leftOut: number } {
  let left = MAX_SHOWN;
  const shownOnes = contents.slice(0, MAX_CONTENTS).map((one) => {
    const { content, cost } = contentOf(recordOf(one), left);
    left -= cost;
    return content;
  });
  return { contents: shownOnes, leftOut: contents.length - shownOnes.length };
}

/** @param left what may still be shown. */
function contentOf(
  { uri, mimeType, text, blob }: Readonly<Record<string, unknown>>,
  left: number,
): { readonly content: Content; readonly cost: number } {
  const named = {
    uri: textIn(uri, MAX_URI_CHARS) ?? '',
    mimeType: textIn(mimeType, MAX_TYPE_CHARS) ?? '',
  };
  if (typeof text === 'string') {
    const kept = cut(text, left);
    const content = { kind: 'text', ...named, text: kept, leftOut: text.length - kept.length } as const;
    return { content, cost: kept.length };
  }
  const base64 = typeof blob === 'string' ? blob : '';
  const bytes = Buffer.byteLength(base64, 'base64');
  const head = Buffer.from(base64.slice(0, 2 * HEX_BYTES), 'base64').subarray(0, HEX_BYTES);
  const type = imageType(head);
  if (type !== undefined && bytes <= left && BASE64.test(base64))
    return { content: { kind: 'image', ...named, mimeType: type, base64, bytes }, cost: bytes };
  return { content: { kind: 'bytes', ...named, bytes, hex: head.toString('hex') }, cost: 0 };
}

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** By their first bytes, whatever they are said to be; no format that can hold a script. */
function imageType(head: Buffer): string | undefined {
  const text = head.toString('latin1');
  if (text.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png';
  if (text.startsWith('\xff\xd8\xff')) return 'image/jpeg';
  if (text.startsWith('GIF87a') || text.startsWith('GIF89a')) return 'image/gif';
  if (text.startsWith('RIFF') && text.startsWith('WEBP', 8)) return 'image/webp';
  return text.startsWith('ftypavif', 4) ? 'image/avif' : undefined;
}
