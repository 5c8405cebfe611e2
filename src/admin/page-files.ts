/** The files of the page, by the path they are served at. */
import { readPageScripts } from '../config/files.ts';
import { PAGE_CSS } from './page-css.ts';
import { pageHtml } from './page-html.ts';

export interface PageFile {
  readonly type: string;
  readonly text: string;
}

/** Read once, at the start: the page then needs no disk. */
export function pageFiles(): ReadonlyMap<string, PageFile> {
  const scripts = readPageScripts().map(
    ([name, text]) =>
      [`/page/${name}`, { type: 'text/javascript; charset=utf-8', text: outdented(text) }] as const,
  );
  const html = pageHtml(scripts.map(([path]) => path));
  return new Map<string, PageFile>([
    ['/', { type: 'text/html; charset=utf-8', text: html }],
    ['/page/style.css', { type: 'text/css; charset=utf-8', text: PAGE_CSS }],
    ...scripts,
  ]);
}

/** Indentation is a sixth of the scripts; no text in them has several lines. */
function outdented(script: string): string {
  return script.replaceAll(/^ +/gm, '');
}
