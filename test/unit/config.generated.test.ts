// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the configuration's own expansion is what is tested.
/** What derives from the schema is current: the JSON Schema, the reference in the README, the examples. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { stringify } from 'yaml';
import { TEN_LINE_EXAMPLE } from '../../src/config/example.ts';
import { loadConfig } from '../../src/config/load.ts';
import { printConfig } from '../../src/config/print.ts';
import { configReference, withReference } from '../../src/config/reference.ts';
import { type JsonSchema, jsonSchema, jsonSchemaText } from '../../src/config/schema-json.ts';
import { CANARY, configOf, ENVIRONMENT, readFrom } from '../support/config.ts';

const ROOT = process.cwd();
const UPDATE = 'run: node build/test/support/update-generated.js';

/** Every key of the schema under the path that people write. */
function keys(schema: JsonSchema, path = ''): readonly (readonly [string, JsonSchema])[] {
  const inner = [
    ...(schema.oneOf ?? []),
    ...(schema.items ? [schema.items] : []),
    ...(schema.additionalProperties ? [schema.additionalProperties] : []),
  ];
  return [
    ...Object.entries(schema.properties ?? {}).flatMap(([key, value]) => [
      [`${path}.${key}`, value] as const,
      ...keys(value, `${path}.${key}`),
    ]),
    ...inner.flatMap((child) => keys(child, path)),
  ];
}

describe('the JSON Schema', () => {
  test('in config/ is the one that the code has', () => {
    assert.equal(readFileSync(join(ROOT, 'config/headgate.schema.json'), 'utf8'), jsonSchemaText(), UPDATE);
  });

  test('describes every key', () => {
    const silent = keys(jsonSchema()).filter(([, schema]) => schema.description === undefined);
    assert.deepEqual(
      silent.map(([path]) => path),
      [],
    );
  });

  test('is strict, names its draft, and takes the short forms', () => {
    const schema = jsonSchema();
    assert.equal(schema.$schema, 'https://json-schema.org/draft/2020-12/schema');
    assert.equal(schema.additionalProperties, false);
    assert.deepEqual(schema.required, ['version', 'upstreams', 'routes']);
    assert.deepEqual(
      schema.properties?.listen?.oneOf?.map(({ type }) => type),
      ['string', 'object'],
    );
    assert.equal(schema.properties?.listen?.default, '127.0.0.1:8080');
  });

  test('lets an expansion stand where a number, a word or a patterned text does', () => {
    const schema = JSON.parse(jsonSchemaText()) as JsonSchema;
    const limits = schema.properties?.listen?.oneOf?.[1]?.properties?.limits?.properties;
    assert.match('${BODY}', new RegExp(limits?.body?.pattern ?? '^$'));
    assert.doesNotMatch('4MB', new RegExp(limits?.body?.pattern ?? ''));
    assert.match('${COUNT:-5}', new RegExp(limits?.headerCount?.anyOf?.[1]?.pattern ?? '^$'));
    assert.equal(limits?.headerCount?.default, 200);
  });

  test('holds every default of the effective configuration', () => {
    const printed = printConfig(
      configOf(
        `${TEN_LINE_EXAMPLE}admin: { token: "\${TOKEN}" }\ncache: { redis: { url: redis://redis } }\n`,
      ),
    );
    for (const [path, { default: standard }] of keys(jsonSchema())) {
      // Two are short for mappings; of the rules there is none by default.
      const isElsewhere = ['.listen', '.admin', '.upstreams.cache.rules.scope'].includes(path);
      if (typeof standard !== 'string' || isElsewhere) continue;
      assert.ok(printed.includes(`${path.slice(path.lastIndexOf('.') + 1)}: ${stringify(standard)}`), path);
    }
  });
});

describe('the reference in the README', () => {
  test('has a row for each key', () => {
    const reference = configReference();
    for (const [path] of keys(jsonSchema())) {
      assert.ok(reference.includes(`| \`${path.slice(path.lastIndexOf('.') + 1)}\` |`), path);
    }
    for (const line of reference.split('\n').filter((text) => text.startsWith('|'))) {
      assert.equal(line.replaceAll('\\|', '').split('|').length, 6, line);
    }
  });

  test('is current', {
    skip: existsSync(join(ROOT, 'README.md')) ? false : 'there is no README.md yet',
  }, () => {
    const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
    const updated = withReference(readme);
    assert.notEqual(updated, undefined, 'README.md has no config-reference markers');
    assert.equal(readme, updated, UPDATE);
  });

  test('is put between its markers and nowhere else', () => {
    const readme = 'before\n<!-- config-reference:start -->\nold\n<!-- config-reference:end -->\nafter\n';
    const updated = withReference(readme) ?? assert.fail();
    assert.ok(updated.startsWith('before\n<!-- config-reference:start -->\n\n#### Top level'));
    assert.ok(updated.endsWith('\n\n<!-- config-reference:end -->\nafter\n'));
    assert.equal(withReference(updated), updated);
    assert.equal(withReference('no markers'), undefined);
  });
});

describe('the examples', () => {
  const example = readFileSync(join(ROOT, 'config/headgate.example.yaml'), 'utf8');

  test('the ten-line example has ten lines and is a whole configuration', () => {
    assert.equal(TEN_LINE_EXAMPLE.trimEnd().split('\n').length, 10);
    assert.deepEqual([...configOf(TEN_LINE_EXAMPLE).upstreams.keys()], ['docs', 'city']);
  });

  test('the full example is valid without a warning', () => {
    const result = loadConfig('config/headgate.example.yaml', {}, () => example);
    assert.deepEqual(result.kind === 'ok' ? result.warnings : result.problems, []);
  });

  test('the full example mentions every key', () => {
    for (const [path] of keys(jsonSchema())) {
      const key = path.slice(path.lastIndexOf('.') + 1);
      assert.match(example, new RegExp(`\\b${key}:`), path);
    }
  });

  test('the full example writes the defaults', () => {
    const withoutRules = example.replaceAll(/^ {6}- \{ match.*\n/gm, '').replace(/^ {4}rules:\n/m, '');
    assert.equal(printConfig(configOf(withoutRules)), printConfig(configOf(TEN_LINE_EXAMPLE)));
  });
});

describe('the printed configuration', () => {
  const everything = readFileSync(join(ROOT, 'test/golden/config/everything.yaml'), 'utf8');

  test('shows no secret, in no place', () => {
    const printed = printConfig(configOf(everything));
    assert.ok(!printed.includes(CANARY));
    assert.ok(printed.includes('[redacted]'));
  });

  test('loads again to the same configuration once the secrets are put back', () => {
    const plain = everything
      .replaceAll(/\$\{(API_KEY|PATH_KEY)\}/g, 'k')
      .replace('&key=k', '')
      .replace('?region=eu', '');
    const printed = printConfig(configOf(plain));
    const restored = printed
      .replaceAll('"[redacted]"', CANARY)
      .replaceAll(/- .?\[redacted\].?$/gm, (_, offset: number) => `- ${CANARY}${offset}`);
    assert.equal(printConfig(configOf(restored)), printed);
  });

  test('is refused as it is when it held secrets: they are known to everybody who saw it', () => {
    const result = loadConfig('printed', ENVIRONMENT, (path) =>
      path === 'printed' ? printConfig(configOf(everything)) : readFrom('/')(path),
    );
    assert.ok(result.kind === 'invalid');
    const errors = result.problems.filter(({ severity }) => severity === 'error');
    assert.ok(
      errors.every(({ message }) => message.includes('[redacted]') || message.includes('stands above')),
    );
  });
});
