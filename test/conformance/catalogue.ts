/** What the suite's servers of both revisions have: its resources and prompts, as data. */

/** A red pixel. */
export const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';

/** A block of content, in either revision. */
export type Block =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image' | 'audio'; readonly data: string; readonly mimeType: string }
  | {
      readonly type: 'resource';
      readonly resource: { readonly uri: string; readonly mimeType: string; readonly text: string };
    };

/** A text block. */
export const text = (value: string): Block => ({ type: 'text', text: value });
/** An image block. */
export const image: Block = { type: 'image', data: PNG, mimeType: 'image/png' };
/** A block that holds a resource. */
export const embedded = (uri: string, mimeType: string, value: string): Block => ({
  type: 'resource',
  resource: { uri, mimeType, text: value },
});

interface Prompt {
  readonly name: string;
  readonly description: string;
  readonly arguments?: ReadonlyArray<{ name: string; description: string; required: true }>;
  readonly get: (values: Readonly<Record<string, string>>) => {
    readonly messages: readonly { readonly role: 'user'; readonly content: Block }[];
  };
}

/** A prompt's answer. */
export const says = (...contents: Block[]): ReturnType<Prompt['get']> => ({
  messages: contents.map((content) => ({ role: 'user', content })),
});

export const PROMPTS: readonly Prompt[] = [
  {
    name: 'test_simple_prompt',
    description: 'A prompt without arguments',
    get: () => says(text('This is a simple prompt for testing.')),
  },
  {
    name: 'test_prompt_with_arguments',
    description: 'A prompt with two arguments',
    arguments: [
      { name: 'arg1', description: 'First test argument', required: true },
      { name: 'arg2', description: 'Second test argument', required: true },
    ],
    get: ({ arg1, arg2 }) => says(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
  },
  {
    name: 'test_prompt_with_embedded_resource',
    description: 'A prompt that holds a resource',
    arguments: [{ name: 'resourceUri', description: 'URI of the resource to embed', required: true }],
    get: ({ resourceUri = '' }) =>
      says(
        embedded(resourceUri, 'text/plain', 'Embedded resource content for testing.'),
        text('Please process the embedded resource above.'),
      ),
  },
  {
    name: 'test_prompt_with_image',
    description: 'A prompt that holds an image',
    get: () => says(image, text('Please analyze the image above.')),
  },
];

export const RESOURCES = [
  { uri: 'test://static-text', name: 'static-text', description: 'A text', mimeType: 'text/plain' },
  { uri: 'test://static-binary', name: 'static-binary', description: 'An image', mimeType: 'image/png' },
  { uri: 'test://watched-resource', name: 'watched-resource', description: 'A text', mimeType: 'text/plain' },
];
export const TEMPLATES = [
  { uriTemplate: 'test://template/{id}/data', name: 'template', mimeType: 'application/json' },
];

/** The content of a resource; undefined for one that is not there. */
export function contentOf(uri: string) {
  if (uri === 'test://static-text')
    return { uri, mimeType: 'text/plain', text: 'This is the content of the static text resource.' };
  if (uri === 'test://watched-resource') return { uri, mimeType: 'text/plain', text: 'Watched.' };
  if (uri === 'test://static-binary') return { uri, mimeType: 'image/png', blob: PNG };
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  if (id === undefined) return undefined;
  const value = { id, templateTest: true, data: `Data for ID: ${id}` };
  return { uri, mimeType: 'application/json', text: JSON.stringify(value) };
}

export function completed(value: string) {
  const values = ['paris', 'park', 'party'].filter((word) => word.startsWith(value));
  return { completion: { values, total: values.length, hasMore: false } };
}
