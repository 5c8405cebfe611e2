/**
 * What the members of list items must be: clients check them all the way down, and one that is wrong costs them the
 * whole list (R16). *Spec:* schema 2026-07-28, `Resource`, `ResourceTemplate`, `Prompt`, `Tool`, `Icon`,
 * `Annotations`. *Never* throws; unknown members may be anything (R20).
 */
import type { ListShape } from '../protocol/methods.ts';

/** Whether a parsed value is what a member must be. */
export type Fits = (value: unknown) => boolean;

const isString: Fits = (value) => typeof value === 'string';
const isNumber: Fits = (value) => typeof value === 'number' && Number.isFinite(value);
const isBoolean: Fits = (value) => typeof value === 'boolean';
const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const oneOf =
  (...texts: readonly string[]): Fits =>
  (value) =>
    texts.includes(value as string);
const listOf =
  (fits: Fits): Fits =>
  (value) =>
    Array.isArray(value) && value.every(fits);

/** An object that has `required`, and of `optional` what it has as it must be. */
const shaped =
  (optional: Readonly<Record<string, Fits>>, required: Readonly<Record<string, Fits>> = {}): Fits =>
  (value) =>
    isObject(value) &&
    Object.entries(required).every(([key, fits]) => Object.hasOwn(value, key) && fits(value[key])) &&
    Object.entries(optional).every(([key, fits]) => !Object.hasOwn(value, key) || fits(value[key]));

/** ISO 8601 with seconds and a zone, as RFC 3339 and official clients ask for it; which days a month has is looked at, too. */
const DATE_TIME =
  /^(\d{4}-\d\d-\d\d)T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;
const isDateTime: Fits = (value) => {
  const day = typeof value === 'string' ? DATE_TIME.exec(value)?.[1] : undefined;
  if (day === undefined) return false;
  const time = Date.parse(`${day}T00:00:00Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(day);
};

const isSchema = shaped({ $schema: isString });
const isIcons = listOf(
  shaped({ mimeType: isString, sizes: listOf(isString), theme: oneOf('light', 'dark') }, { src: isString }),
);
const isAnnotations = shaped({
  audience: listOf(oneOf('user', 'assistant')),
  priority: (value) => isNumber(value) && (value as number) >= 0 && (value as number) <= 1,
  lastModified: isDateTime,
});
const isArguments = listOf(shaped({ description: isString, required: isBoolean }, { name: isString }));
const isToolAnnotations = shaped({
  title: isString,
  readOnlyHint: isBoolean,
  destructiveHint: isBoolean,
  idempotentHint: isBoolean,
  openWorldHint: isBoolean,
});

const COMMON = { title: isString, description: isString, icons: isIcons, _meta: isObject };

/** The optional members of the items of each list. */
export const OPTIONAL_MEMBERS: Readonly<Record<ListShape['field'], Readonly<Record<string, Fits>>>> = {
  resources: { ...COMMON, mimeType: isString, size: isNumber, annotations: isAnnotations },
  resourceTemplates: { ...COMMON, mimeType: isString, annotations: isAnnotations },
  prompts: { ...COMMON, arguments: isArguments },
  tools: { ...COMMON, outputSchema: isSchema, annotations: isToolAnnotations },
};
