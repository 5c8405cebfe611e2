/** The admin page in a real Chromium, before a real gateway and real servers. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core';
import { type AdminGateway, startAdminGateway } from '../support/admin-kit.ts';
import { missingChromium, seriousFaults, startChromium } from '../support/chromium.ts';
import { CANARY } from '../support/config.ts';
import { type Gallery, PNG, startGallery } from '../support/gallery.ts';
import { call, until } from '../support/mcp.ts';

/** Of markup, script and style together. */
const MAX_PAGE_BYTES = 64_000;
const HOSTILE_URI = 'art:x/\u202egnp.evil<img src=x onerror=pwned()>';
const HOSTILE_NAME = '\u202egnp.\u0007 \u200b<script>pwned()</script>';

const skip = missingChromium() ?? false;
const textOf = async (one: Locator): Promise<string> => (await one.textContent()) ?? '';

describe('the admin page', { skip }, () => {
  let browser: Browser;
  let context: BrowserContext;
  let art: Gallery;
  let books: Gallery;
  let gateway: AdminGateway;
  /** What a page may never do: errors, refused scripts, requests elsewhere, dialogs. */
  const faults: string[] = [];
  /** What the page is to be told of without it being a fault. */
  let isAwayExpected = false;

  const yaml = () => `
upstreams:
  art: { url: "${art.url}" }
  books: { url: "${books.url}" }
routes:
  - { path: /mcp, upstreams: [art, books], pageSize: 20 }
  - { path: /books, upstreams: [books] }
`;

  before(async () => {
    art = await startGallery({
      scheme: 'art',
      resources: [
        { uri: 'art://one', name: 'one', title: 'The first', mimeType: 'image/png', size: 70 },
        { uri: HOSTILE_URI, name: HOSTILE_NAME },
      ],
      templates: ['art://{name}', 'art://rooms/{room}/{name}'],
      tools: ['paint'],
      contents: {
        'art://one': [{ mimeType: 'image/png', blob: PNG }],
        'art://svg': [
          {
            mimeType: 'image/svg+xml',
            blob: Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" onload="pwned()"/>').toString(
              'base64',
            ),
          },
        ],
        'art://html': [
          { mimeType: 'text/html', text: `<script>pwned()</script>\n\u202etxet <b onclick="pwned()">x</b>` },
        ],
      },
    });
    books = await startGallery({
      scheme: 'books',
      resources: Array.from({ length: 30 }, (_, i) => ({ uri: `books://${i}`, name: `book ${i}` })),
    });
    gateway = await startAdminGateway(yaml());
    browser = await startChromium();
  });
  after(async () => {
    await browser.close();
    await gateway.stop();
    await Promise.all([art.close(), books.close()]);
  });
  afterEach(async () => {
    await context.close();
    assert.deepEqual(faults.splice(0), []);
    isAwayExpected = false;
  });

  async function open(
    url = gateway.admin,
    options: Parameters<Browser['newContext']>[0] = {},
  ): Promise<Page> {
    context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
    context.setDefaultTimeout(10_000);
    const page = await context.newPage();
    page.on('pageerror', (error) => faults.push(error.message));
    page.on('dialog', (dialog) => {
      faults.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on('console', (message) => {
      if (message.type() === 'error' && !isAwayExpected) faults.push(message.text());
    });
    page.on('request', (request) => {
      const { origin, protocol } = new URL(request.url());
      if (protocol !== 'data:' && origin !== new URL(url).origin) faults.push(request.url());
    });
    await page.addInitScript('window.pwned = () => { throw new Error("pwned"); }');
    await page.goto(url);
    return page;
  }

  const read = (uri: string) => call(`${gateway.mcp}/mcp`, 'resources/read', { uri });
  /** The value beside a name in the overview or the reader. */
  const figure = (page: Page, name: string) =>
    page
      .locator(`main dl:visible > div`)
      .filter({ has: page.locator('dt', { hasText: exactly(name) }) })
      .locator('dd');
  const exactly = (text: string) => new RegExp(`^${text}$`);
  const catalogue = async (options?: Parameters<Browser['newContext']>[0]): Promise<Page> => {
    const page = await open(`${gateway.admin}/#resources`, options);
    await page.getByRole('button', { name: 'art://one' }).waitFor();
    return page;
  };

  test('shows at a glance what there is, from one origin, in less than 64 KB', async (t) => {
    let bytes = 0;
    const startedAt = performance.now();
    context = await browser.newContext();
    const page = await context.newPage();
    const sizes: Promise<unknown>[] = [];
    page.on('response', (response) => {
      if (!response.url().includes('/api/'))
        sizes.push(response.body().then((body) => (bytes += body.length)));
    });
    await page.goto(gateway.admin);
    await page.locator('.mark', { hasText: /Ready$/ }).waitFor();
    const ms = Math.round(performance.now() - startedAt);
    await Promise.all(sizes);
    t.diagnostic(`${bytes} bytes, ready after ${ms} ms`);
    assert.ok(bytes > 10_000 && bytes < MAX_PAGE_BYTES, `${bytes}`);
    assert.equal(await page.title(), 'Overview \u00b7 Headgate');
    assert.equal(await textOf(figure(page, 'Upstreams up')), '2 of 2');
    assert.match(await textOf(page.locator('tr[data-upstream=art]')), /Up[\s\S]*2026-07-28[\s\S]*Closed/);
    assert.deepEqual(await page.locator('h2:visible').allTextContents(), [
      ...['Cache', 'Upstreams', 'Latest events', 'Invalidations', 'Redis', 'Open streams'],
    ]);
  });

  test('shows a hit when it happens, without being loaded again', async () => {
    await read('books://1');
    const page = await open();
    const hits = figure(page, 'Hits');
    await hits.waitFor();
    const before = Number(await textOf(hits));
    await read('books://1');
    await until(async () => Number(await textOf(hits)) === before + 1, 'one hit more');
    assert.match((await page.getByRole('img').first().getAttribute('aria-label')) ?? '', /\d+ hits?,/);
    assert.ok((await page.locator('.chart rect.hit').count()) > 0);
  });

  test('lists the catalogue with owners and templates, page by page', async () => {
    const page = await catalogue();
    const row = page.locator('.items tbody tr').first();
    assert.match(
      await textOf(row),
      /art:\/\/one[\s\S]*The first \u00b7 image\/png \u00b7 70 B[\s\S]*art[\s\S]*art:\/\/\{name\}/,
    );
    assert.equal(await page.locator('.items tbody tr').count(), 20);
    await page.getByRole('button', { name: 'Load more' }).click();
    await until(async () => (await page.locator('.items tbody tr').count()) === 32, 'the second page');
    assert.equal(await page.getByRole('button', { name: 'Load more' }).isVisible(), false);
    await page.getByRole('radio', { name: 'Tools' }).check();
    await page.locator('.items', { hasText: 'paint' }).waitFor();
    await page.getByLabel('Route').selectOption('/books');
    await page.getByRole('radio', { name: 'Resources' }).check();
    await until(async () => (await page.locator('.items tbody tr').count()) === 30, 'the other route');
  });

  test('can be used by the keyboard alone: filter, choose, read, purge', async () => {
    const page = await catalogue();
    await page.keyboard.press('/');
    await page.keyboard.type('books://1');
    await page.getByText('9 of 20 items').waitFor();
    for (let i = 0; i < 4 && !(await inRows(page)); i++) {
      await page.keyboard.press('Tab');
    }
    await until(async () => {
      if (await inRows(page)) return true;
      await page.keyboard.press('Tab');
      return false;
    }, 'the rows by Tab');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('End');
    await page.keyboard.press('Home');
    await page.keyboard.press('ArrowDown');
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'books://10');
    await page.keyboard.press('Enter');
    await page.locator('.verdict').waitFor();
    assert.equal(await page.getByLabel('URI', { exact: true }).inputValue(), 'books://10');
    assert.match(await textOf(page.locator('.answer pre')), /of books:\/\/10/);

    const asked = books.askedFor('resources/read');
    await page.getByRole('button', { name: 'Purge this resource' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Read' }).press('Enter');
    await page.locator('.verdict', { hasText: 'Hit' }).waitFor();
    assert.equal(books.askedFor('resources/read'), asked, 'Escape purges nothing');

    await page.getByRole('button', { name: 'Purge this resource' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Enter');
    await page.getByText('What was cached of the resource is dropped').waitFor();
    await page.getByRole('button', { name: 'Read' }).press('Enter');
    await page.locator('.verdict', { hasText: 'Miss' }).waitFor();
    assert.equal(books.askedFor('resources/read'), asked + 1);
  });

  const inRows = (page: Page) =>
    page.evaluate('document.activeElement.closest("tbody") !== null') as Promise<boolean>;

  test('says how a read was answered: a miss, then a hit', async () => {
    const page = await catalogue();
    const uri = page.getByLabel('URI', { exact: true });
    await uri.fill('art://rooms/4/x');
    await uri.press('Enter');
    await page.getByText('Resource not found').waitFor();
    assert.equal(await textOf(figure(page, 'Template')), 'art://rooms/{room}/{name}');
    await uri.fill('books://20');
    await uri.press('Enter');
    // That one was a miss, too, and is still shown.
    await until(async () => (await textOf(figure(page, 'Upstream'))) === 'books', 'the other answer');
    await page.locator('.verdict', { hasText: 'Miss' }).waitFor();
    assert.match(await textOf(figure(page, 'Took')), /ms, .* of it at the upstream$/);
    assert.equal(await textOf(figure(page, 'Cache-Status')), 'headgate; fwd=uri-miss; stored');
    await uri.press('Enter');
    await page.locator('.verdict', { hasText: 'Hit' }).waitFor();
    assert.match(await textOf(figure(page, 'Still fresh for')), /^(1 min|5\d s)$/);
    assert.equal(await textOf(figure(page, 'Scope')), 'public: for every caller');
  });

  test('shows what upstreams say as text and nothing else, with everything odd in it visible', async () => {
    const page = await catalogue();
    const uri = page.getByLabel('URI', { exact: true });
    const row = page.locator('.items tr', { hasText: 'gnp.evil' });
    assert.match(await textOf(row), /art:x\/\u27e8U\+202E\u27e9gnp\.evil<img src=x onerror=pwned\(\)>/);
    assert.match(
      await textOf(row),
      /\u27e8U\+202E\u27e9gnp\.\u27e8U\+0007\u27e9 \u27e8U\+200B\u27e9<script>/,
    );
    await uri.fill('art://html');
    await uri.press('Enter');
    await page.locator('.answer pre').waitFor();
    assert.match(
      await textOf(page.locator('.answer pre')),
      /^<script>pwned\(\)<\/script>\n\u27e8U\+202E\u27e9txet <b onclick/,
    );
    await uri.fill('art://svg');
    await uri.press('Enter');
    await page.locator('.answer pre.hex').waitFor();
    assert.match(await textOf(page.locator('.answer')), /image\/svg\+xml/);
    assert.equal(await page.locator('.answer img, .answer svg, .answer b[onclick], main script').count(), 0);
    await uri.fill('art://one');
    await uri.press('Enter');
    await page.locator('.answer img').waitFor();
    const image = 'document.querySelector(".answer img")';
    assert.equal(await page.evaluate(`${image}.decode().then(() => ${image}.naturalWidth)`), 1);
  });

  test('shows an upstream going down and coming back', async () => {
    const page = await open();
    const row = page.locator('tr[data-upstream=books]');
    await row.locator('.mark', { hasText: /Up$/ }).waitFor();
    await books.down();
    await until(async () => {
      await read(`books://fresh-${Math.random()}`);
      return row.locator('.mark', { hasText: /Down$/ }).isVisible();
    }, 'the upstream to be shown as down');
    await page.getByRole('status').filter({ hasText: 'Upstream books is down.' }).waitFor();
    assert.match(await textOf(row), /Open[\s\S]*Not reachable/);
    assert.equal(await textOf(figure(page, 'Upstreams up')), '1 of 2');
    await books.back();
    await until(
      async () => {
        await read('books://2');
        return row.locator('.mark', { hasText: /Up$/ }).isVisible();
      },
      'the upstream to be shown as up',
      20_000,
    );
    await page.getByText('books is asked again').waitFor();
  });

  test('shows what was said to be over, and who said so', async () => {
    const page = await open();
    await page.locator('tr[data-upstream=art]').getByRole('button', { name: 'Purge' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Purge' }).click();
    await page.locator('.happenings li', { hasText: 'Everything of art over: purged' }).first().waitFor();
    await page.locator('.invalidations tr', { hasText: 'art' }).filter({ hasText: 'Everything' }).waitFor();
  });

  test('R44: shows another configuration as it is taken up, and one that is refused', async () => {
    const page = await open();
    const upstreams = page.getByRole('table', { name: /upstreams/i });
    await upstreams.getByText('books', { exact: true }).waitFor();
    gateway.write(
      `${yaml().replace('routes:', `  maps: { url: "${art.url}" }\nroutes:`)}  - { path: /maps, upstreams: [maps] }\n`,
    );
    await upstreams.getByText('maps', { exact: true }).waitFor();
    await page.getByText('Configuration reloaded').waitFor();
    gateway.write(yaml().replace('routes:', 'rotes:'));
    await page.getByText('Configuration refused').waitFor();
    gateway.write(yaml());
    await upstreams.getByText('maps', { exact: true }).waitFor({ state: 'detached' });
    assert.equal(await upstreams.getByText('books', { exact: true }).count(), 1);
  });

  test('shows the configuration', async () => {
    const page = await open();
    await page.getByRole('link', { name: 'Configuration' }).click();
    await page.locator('pre', { hasText: 'pageSize: 20' }).waitFor();
    assert.equal(await page.title(), 'Configuration \u00b7 Headgate');
  });

  /** That axe finds nothing serious, and that nothing is wider than the screen. */
  async function assertFine(page: Page): Promise<void> {
    assert.deepEqual(await seriousFaults(page), []);
    const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
    assert.equal(await page.evaluate(overflow), 0);
  }

  for (const [scheme, width] of [
    ['light', 1280],
    ['dark', 390],
  ] as const) {
    test(`has nothing serious for axe to find, ${scheme}, ${width} pixels wide`, async () => {
      const page = await open(gateway.admin, { viewport: { width, height: 844 }, colorScheme: scheme });
      await page.locator('.mark', { hasText: /Ready$/ }).waitFor();
      await assertFine(page);
      await page.getByRole('link', { name: 'Resources' }).click();
      await page.getByRole('button', { name: 'art://one' }).click();
      await page.locator('.answer img').waitFor();
      await assertFine(page);
      await page.getByRole('button', { name: 'Purge this resource' }).click();
      await page.getByRole('dialog').waitFor();
      await assertFine(page);
      await page.keyboard.press('Escape');
      await page.getByRole('link', { name: 'Configuration' }).click();
      await page.locator('pre', { hasText: 'pageSize' }).waitFor();
      await assertFine(page);
    });
  }

  test('says that the gateway does not answer, and recovers by itself', async () => {
    const { port } = new URL(gateway.admin);
    const page = await open();
    await page.locator('.live', { hasText: 'Live' }).waitFor();
    isAwayExpected = true;
    await gateway.stop();
    await page.getByRole('alert').filter({ hasText: 'The gateway does not answer since' }).waitFor();
    assert.match(await textOf(figure(page, 'Readiness')), /Not known/);
    assert.deepEqual(await seriousFaults(page), []);
    gateway = await startAdminGateway(yaml(), { admin: `127.0.0.1:${port}` });
    // A question that nobody answers is given up after eight seconds, and asked again two seconds later.
    await page.getByText('The gateway answers again.').waitFor({ timeout: 20_000 });
    await page.locator('.mark', { hasText: /Ready$/ }).waitFor();
    assert.equal(await textOf(page.getByRole('alert')), '');
  });

  test('asks for the token, again when it is wrong, and keeps it for the tab alone', async () => {
    const guarded = await startAdminGateway(yaml(), {
      admin: `{ address: "0.0.0.0:0", token: "\${TOKEN}" }`,
      env: { TOKEN: CANARY },
    });
    try {
      isAwayExpected = true;
      const page = await open(guarded.admin);
      const token = page.getByRole('textbox', { name: 'Admin token' });
      await token.waitFor();
      assert.deepEqual(await seriousFaults(page), []);
      assert.equal(await page.locator('tr[data-upstream]').count(), 0, 'nothing is shown before');
      await page.keyboard.press('Escape');
      await token.fill('not this one');
      await token.press('Enter');
      await page.getByText('The gateway refused that token').waitFor();
      await token.fill(CANARY);
      await token.press('Enter');
      await page.locator('tr[data-upstream=art]').waitFor();
      await page.getByRole('link', { name: 'Resources' }).click();
      await page.getByRole('button', { name: 'art://one' }).click();
      await page.locator('.answer img').waitFor();
      assert.equal(art.lastHeaders.authorization, undefined, 'no upstream is sent it');
      assert.equal(await page.evaluate('JSON.stringify(localStorage) + document.cookie'), '{}');
      assert.ok(!page.url().includes(CANARY) && !(await page.content()).includes(CANARY));
      await page.reload();
      await page.getByRole('button', { name: 'art://one' }).waitFor();
    } finally {
      await guarded.stop();
    }
  });
});
