/**
 * Writes what derives from the configuration schema: `config/headgate.schema.json`, and the reference in README.md.
 *
 *     node build/test/support/update-generated.js      from the project's folder, after a build
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { REFERENCE_END, REFERENCE_START, withReference } from '../../src/config/reference.ts';
import { jsonSchemaText } from '../../src/config/schema-json.ts';

writeFileSync('config/headgate.schema.json', jsonSchemaText());
if (existsSync('README.md')) {
  const updated = withReference(readFileSync('README.md', 'utf8'));
  if (updated === undefined)
    throw new Error(`README.md needs the lines ${REFERENCE_START} and ${REFERENCE_END}`);
  writeFileSync('README.md', updated);
}
