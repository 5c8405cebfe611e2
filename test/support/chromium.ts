/** A real Chromium for tests of the admin page, without a download: the one that the system has. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import axe from 'axe-core';
import { type Browser, chromium, type Page } from 'playwright-core';

function find(): string | undefined {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .map((folder) => join(folder, 'chromium'))
    .find((path) => existsSync(path));
}

/** Why the test is to be skipped; undefined where there is a Chromium. */
export function missingChromium(): string | undefined {
  return find() === undefined
    ? 'no chromium here: install chromium (Debian package of that name)'
    : undefined;
}

export function startChromium(): Promise<Browser> {
  const isRoot = process.getuid?.() === 0;
  return chromium.launch({ executablePath: find() ?? 'chromium', args: isRoot ? ['--no-sandbox'] : [] });
}

interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

/** What axe finds serious or worse on a page, in words. */
export async function seriousFaults(page: Page): Promise<readonly string[]> {
  // Through the debugger: the page's own policy lets no other script in.
  await page.evaluate(axe.source);
  const violations = (await page.evaluate(
    'axe.run().then((found) => found.violations)',
  )) as readonly Violation[];
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`));
}
