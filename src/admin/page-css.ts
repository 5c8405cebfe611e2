export const PAGE_CSS = '';
