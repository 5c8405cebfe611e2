/** The suite's tools that only answer, and what its other tools ask: its names and texts, for servers of both revisions. */
import { type Block, embedded, image, text } from './catalogue.ts';

/** A WAV header without a sample behind it. */
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';

/** A JSON Schema with keywords that the SDK's own type does not know. */
export type JsonObject = Readonly<Record<string, unknown>>;

export interface PlainTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema?: JsonObject;
  readonly call: () => { readonly content: readonly Block[] };
}

const answer = (...content: Block[]) => ({ content });

const JSON_SCHEMA_2020_12: JsonObject = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // biome-ignore lint/suspicious/noThenProperty: a JSON Schema keyword, never awaited
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
};

/** The first tool is the one that the header checks call with no arguments: it has to succeed. */
export const PLAIN_TOOLS: readonly PlainTool[] = [
  {
    name: 'test_simple_text',
    description: 'Answers with a text',
    call: () => answer(text('This is a simple text response for testing.')),
  },
  { name: 'test_image_content', description: 'Answers with an image', call: () => answer(image) },
  {
    name: 'test_audio_content',
    description: 'Answers with a sound',
    call: () => answer({ type: 'audio', data: WAV, mimeType: 'audio/wav' }),
  },
  {
    name: 'test_embedded_resource',
    description: 'Answers with an embedded resource',
    call: () =>
      answer(embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')),
  },
  {
    name: 'test_multiple_content_types',
    description: 'Answers with a text, an image and a resource',
    call: () =>
      answer(
        text('Multiple content types test:'),
        image,
        embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
      ),
  },
  {
    name: 'test_error_handling',
    description: 'Always fails',
    call: () => ({ ...answer(text('This tool intentionally returns an error for testing')), isError: true }),
  },
  {
    name: 'json_schema_2020_12_tool',
    description: 'Tool with JSON Schema 2020-12 features',
    inputSchema: JSON_SCHEMA_2020_12,
    call: () => answer(text('Valid.')),
  },
  {
    name: 'test_mirrored_parameter',
    description: 'Has a parameter that is mirrored into the header Mcp-Param-Region',
    inputSchema: { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } },
    call: () => answer(text('The header fits.')),
  },
];

/** A form of one string. */
export const schemaFor = (field: string) => ({
  type: 'object' as const,
  properties: { [field]: { type: 'string' as const } },
  required: [field],
});

/** What is asked of a user. */
export const ELICITATIONS = {
  name: { message: 'What is your name?', requestedSchema: schemaFor('name') },
  confirm: {
    message: 'Please confirm',
    requestedSchema: {
      type: 'object' as const,
      properties: { ok: { type: 'boolean' as const } },
      required: ['ok'],
    },
  },
  user: {
    message: 'Please answer',
    requestedSchema: {
      type: 'object' as const,
      properties: {
        username: { type: 'string' as const, description: "User's response" },
        email: { type: 'string' as const, description: "User's email address" },
      },
      required: ['username', 'email'],
    },
  },
  defaults: {
    message: 'Please review and update the form fields with defaults',
    requestedSchema: {
      type: 'object' as const,
      properties: {
        name: { type: 'string' as const, default: 'John Doe' },
        age: { type: 'integer' as const, default: 30 },
        score: { type: 'number' as const, default: 95.5 },
        status: { type: 'string' as const, enum: ['active', 'inactive', 'pending'], default: 'active' },
        verified: { type: 'boolean' as const, default: true },
      },
      required: [],
    },
  },
  enums: {
    message: 'Please select options from the enum fields',
    requestedSchema: {
      type: 'object' as const,
      properties: {
        untitledSingle: { type: 'string' as const, enum: ['option1', 'option2', 'option3'] },
        titledSingle: {
          type: 'string' as const,
          oneOf: [
            { const: 'value1', title: 'First Option' },
            { const: 'value2', title: 'Second Option' },
            { const: 'value3', title: 'Third Option' },
          ],
        },
        legacyEnum: {
          type: 'string' as const,
          enum: ['opt1', 'opt2', 'opt3'],
          enumNames: ['Option One', 'Option Two', 'Option Three'],
        },
        untitledMulti: {
          type: 'array' as const,
          items: { type: 'string' as const, enum: ['option1', 'option2', 'option3'] },
        },
        titledMulti: {
          type: 'array' as const,
          items: {
            anyOf: [
              { const: 'value1', title: 'First Choice' },
              { const: 'value2', title: 'Second Choice' },
              { const: 'value3', title: 'Third Choice' },
            ],
          },
        },
      },
      required: [],
    },
  },
};

/** What is asked of a model. */
export const SAMPLING = (prompt: string) => ({
  messages: [{ role: 'user' as const, content: { type: 'text' as const, text: prompt } }],
  maxTokens: 100,
});

/** Descriptions of the tools that ask, log or report. */
export const TEXTS: Readonly<Record<string, string>> = {
  test_tool_with_progress: 'Reports progress three times',
  test_tool_with_logging: 'Logs three times',
  test_reconnection: 'Closes its stream before it answers',
  test_logging_tool: 'Logs, which nobody may see who set no log level',
  test_sampling: 'Asks for a sample',
  test_elicitation: 'Asks the user',
  test_elicitation_sep1034_defaults: 'Asks with defaults',
  test_elicitation_sep1330_enums: 'Asks with choices',
};
