/** The page before its script has run: what stays is said by the script, out of what the gateway answers. */

const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath d='M2 13V3h3v10zM11 13V3h3v10zM5 7h6v2H5z' fill='%230b6e4f'/%3E%3C/svg%3E";

/** @param scripts their paths; all are fetched at once. */
export function pageHtml(scripts: readonly string[]): string {
  const preloads = scripts.map((path) => `<link rel="modulepreload" href="${path}">`).join('\n');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Headgate</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="${ICON}">
<link rel="stylesheet" href="/page/style.css">
${preloads}
<script type="module" src="/page/main.js"></script>
</head>
<body>
<div id="app">
<main><p class="boot">Headgate. If this text stays, the scripts of the page are off or were not built (npm run build).</p></main>
</div>
</body>
</html>
`;
}
