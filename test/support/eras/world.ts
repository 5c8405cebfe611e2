/** What all servers of the eras' matrix offer, in whichever revision they speak. */

export const PAGES = ['one', 'two', 'three'] as const;
export const TICKER = 'era://ticker';
export const TEMPLATE = 'era://pages/{name}';
/** How often the ticker changes. */
export const TICK_MS = 200;
export const STEPS = 3;
export const QUESTION = {
  message: 'Which colour?',
  requestedSchema: {
    type: 'object' as const,
    properties: { colour: { type: 'string' as const } },
    required: ['colour'],
  },
};
const NO_ARGUMENTS = { type: 'object' as const, properties: {} };

export const RESOURCES = [
  ...PAGES.map((name) => ({ uri: pageUri(name), name, mimeType: 'text/plain' })),
  { uri: TICKER, name: 'ticker', mimeType: 'text/plain' },
];
export const TEMPLATES = [{ uriTemplate: TEMPLATE, name: 'page', mimeType: 'text/plain' }];
export const TOOLS = [
  { name: 'count', description: 'counts, and says how far it is', inputSchema: NO_ARGUMENTS },
  { name: 'paint', description: 'asks for a colour', inputSchema: NO_ARGUMENTS },
];
export const PROMPTS = [{ name: 'greet', description: 'greets' }];

export function pageUri(name: string): string {
  return `era://pages/${name}`;
}

/** The text of a resource; undefined for one that is not there. */
export function textOf(uri: string, ticks: number): string | undefined {
  if (uri === TICKER) return `tick ${ticks}`;
  const name = PAGES.find((one) => pageUri(one) === uri);
  return name && `page ${name}`;
}

export function completed(value: string): { completion: { values: string[] } } {
  return { completion: { values: PAGES.filter((name) => name.startsWith(value)) } };
}

export function painted(colour: unknown): { content: { type: 'text'; text: string }[] } {
  return { content: [{ type: 'text', text: `painted ${String(colour)}` }] };
}

export const COUNTED = { content: [{ type: 'text' as const, text: `counted to ${STEPS}` }] };
