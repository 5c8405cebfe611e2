/** How the page looks: system fonts, two themes by the system's choice, from a phone to a wide screen. */
export const PAGE_CSS = `
:root {
  color-scheme: light dark;
  --ground: #f4f6f4; --surface: #fff; --sunken: #eef1ee; --line: #d5dcd7; --edge: #7d8a83;
  --ink: #16201b; --soft: #4d5a53; --accent: #0a5f44; --on-accent: #fff;
  --good: #0b6e4f; --warn: #8a5200; --bad: #b3261e;
  --hit: #1f8a66; --stale: #d08a1d; --miss: #8196a8; --bypass: #c3ccd3; --area: #1f8a6622;
  --mono: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0e1311; --surface: #161d1a; --sunken: #111816; --line: #2b3631; --edge: #6f7e77;
    --ink: #e4ebe7; --soft: #a3b1aa; --accent: #63d3a6; --on-accent: #06251a;
    --good: #5fd0a3; --warn: #e9b15c; --bad: #ff9187;
    --hit: #42b48b; --stale: #dba04a; --miss: #6d8296; --bypass: #3d4a53; --area: #42b48b2e;
  }
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 14px/1.45 system-ui, sans-serif; }
h1, h2, p, dl, dd, ol, figure, fieldset { margin: 0; padding: 0; border: 0; }
ol { list-style: none; }
h2 { font-size: 13px; font-weight: 650; letter-spacing: .01em; margin-bottom: 10px; }
small { color: var(--soft); font-size: 12px; }
code, pre, .link { font-family: var(--mono); font-size: 12.5px; overflow-wrap: anywhere; }
a { color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
main:focus { outline: none; }
.unseen:not(:focus) { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.skip { position: absolute; left: 16px; top: -60px; padding: 8px 12px; background: var(--surface); z-index: 2; }
.skip:focus { top: 8px; }
.boot { max-width: 60ch; margin: 20vh auto; padding: 0 24px; color: var(--soft); }

header, main, footer { max-width: 1280px; margin: 0 auto; padding: 0 24px; }
header { display: flex; align-items: center; gap: 28px; height: 56px; }
h1 { font-size: 17px; font-weight: 700; letter-spacing: -.01em; display: flex; align-items: baseline; gap: 8px; }
h1 small { font-weight: 400; }
nav { display: flex; gap: 4px; align-self: stretch; }
nav a { display: flex; align-items: center; padding: 2px 10px 0; color: var(--soft); text-decoration: none; border-bottom: 2px solid transparent; }
nav a:hover { color: var(--ink); }
nav a[aria-current] { color: var(--ink); font-weight: 600; border-bottom-color: var(--accent); }
.live { margin-left: auto; font-size: 13px; white-space: nowrap; }
footer { min-height: 44px; padding-top: 12px; padding-bottom: 12px; }
.said { position: fixed; left: 50%; bottom: 20px; transform: translateX(-50%); max-width: min(560px, 92vw); padding: 10px 16px; border-radius: 6px; background: var(--ink); color: var(--ground); font-size: 13px; z-index: 3; }
.said:empty { background: none; padding: 0; }
.lost:not(:empty) { padding: 10px 14px; margin-bottom: 14px; border: 1px solid var(--bad); border-left-width: 4px; border-radius: 6px; color: var(--bad); background: var(--surface); }
.away .panels, .away .vitals { filter: grayscale(1); opacity: .85; }

.panel { background: var(--surface); border: 1px solid var(--line); border-radius: 8px; padding: 14px 16px; min-width: 0; }
.panels { display: grid; grid-template-columns: repeat(12, minmax(0, 1fr)); gap: 14px; }
.cache, .upstreams { grid-column: 1 / -1; }
.happenings-panel, .invalidations { grid-column: span 6; }
.redis { grid-column: span 6; }
.streams { grid-column: span 6; }

.vitals { display: grid; grid-template-columns: repeat(6, minmax(0, 1fr)); margin-bottom: 14px; background: var(--surface); border: 1px solid var(--line); border-radius: 8px; }
.vitals > div { padding: 11px 16px 12px; border-left: 1px solid var(--line); }
.vitals > div:first-child { border-left: 0; }
dt { color: var(--soft); font-size: 12px; }
.vitals dd { font-size: 19px; font-weight: 600; letter-spacing: -.01em; white-space: nowrap; font-variant-numeric: tabular-nums; }
.vitals dd small { display: block; font-weight: 400; white-space: normal; }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(148px, 1fr)); gap: 12px 20px; }
.facts dd { font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.facts dd small { display: block; }
.wide { grid-column: 1 / -1; }
.gauge { display: block; width: 100%; height: 4px; margin-top: 5px; border-radius: 2px; }
.gauge .all { fill: var(--line); }
.gauge .full { fill: var(--hit); }

.mark { white-space: nowrap; }
.mark i { font-style: normal; font-size: .8em; margin-right: .45em; }
.mark.good { color: var(--good); }
.mark.bad { color: var(--bad); font-weight: 600; }
.mark.warn { color: var(--warn); }
.mark.none { color: var(--soft); }

.ratio { color: var(--soft); margin-bottom: 8px; }
.ratio b { color: var(--ink); font-size: 26px; font-weight: 650; letter-spacing: -.02em; font-variant-numeric: tabular-nums; margin-right: 4px; }
.chart { position: relative; padding-right: 44px; }
.chart svg { display: block; width: 100%; height: 150px; border-bottom: 1px solid var(--line); }
.chart .grid line { stroke: var(--line); vector-effect: non-scaling-stroke; }
.chart .line { fill: none; stroke: var(--hit); stroke-width: 2; vector-effect: non-scaling-stroke; stroke-linejoin: round; }
.chart .area { fill: var(--area); }
.chart .y { position: absolute; right: 0; width: 38px; font-size: 11px; line-height: 1; color: var(--soft); transform: translateY(-50%); font-variant-numeric: tabular-nums; }
.chart .top { top: 8px; } .chart .middle { top: 50px; } .chart .bottom { top: 92px; }
.hit { fill: var(--hit); background: var(--hit); }
.stale { fill: var(--stale); background: var(--stale); }
.miss { fill: var(--miss); background: var(--miss); }
.bypass { fill: var(--bypass); background: var(--bypass); }
.chart .x { display: flex; justify-content: space-between; margin-top: 3px; font-size: 11px; color: var(--soft); }
.legend { display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 10px 0 16px; color: var(--soft); font-size: 12px; }
.legend .axis { margin-left: auto; padding-right: 44px; }
.key { display: inline-block; width: 9px; height: 9px; border-radius: 2px; margin-right: 6px; }

table { width: 100%; border-collapse: collapse; }
th, td { text-align: left; vertical-align: top; padding: 7px 14px 7px 0; border-top: 1px solid var(--line); font-weight: 400; }
thead th, thead td { border-top: 0; padding-top: 0; color: var(--soft); font-size: 12px; white-space: nowrap; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.upstreams tbody th { font-weight: 600; }
.upstreams td:not(.action) { white-space: nowrap; }
.about { display: block; font-weight: 400; max-width: 34ch; overflow-wrap: anywhere; }
.action { text-align: right; padding-right: 0; }
.scroll { overflow: auto; }
.short { max-height: 232px; }
.tall { max-height: min(62vh, 720px); margin-top: 10px; }
.tall thead th { position: sticky; top: 0; background: var(--surface); padding-top: 6px; box-shadow: 0 1px var(--line); }
.empty { color: var(--soft); padding: 10px 0; }
.happenings li { display: flex; gap: 14px; padding: 6px 0; border-top: 1px solid var(--line); }
.happenings li:first-child { border-top: 0; padding-top: 0; }
.happenings time { color: var(--soft); font-variant-numeric: tabular-nums; }
.what.bad b { color: var(--bad); } .what.good b { color: var(--good); }
.times { margin-left: auto; color: var(--soft); font-variant-numeric: tabular-nums; padding-right: 4px; }

.browser { display: grid; grid-template-columns: minmax(0, 7fr) minmax(0, 6fr); gap: 14px; align-items: start; }
.controls { display: flex; gap: 10px; align-items: flex-end; }
.field { display: grid; gap: 3px; min-width: 0; }
.grow { flex: 1; }
label { color: var(--soft); font-size: 12px; }
input, select, button { font: inherit; color: inherit; }
input:not([type=radio]), select { width: 100%; height: 34px; padding: 0 10px; background: var(--surface); border: 1px solid var(--edge); border-radius: 5px; min-width: 0; }
#uri { font-family: var(--mono); font-size: 12.5px; }
button { height: 34px; padding: 0 14px; border: 1px solid var(--edge); border-radius: 5px; background: var(--surface); cursor: pointer; white-space: nowrap; }
button:hover { border-color: var(--ink); }
button:disabled { opacity: .5; cursor: default; }
button.main { background: var(--accent); border-color: var(--accent); color: var(--on-accent); font-weight: 600; }
button.danger { background: var(--bad); border-color: var(--bad); color: var(--surface); font-weight: 600; }
button.quiet { height: 28px; padding: 0 10px; font-size: 13px; border-color: var(--line); color: var(--soft); }
button.quiet:hover { color: var(--bad); border-color: var(--bad); }
button.link { height: auto; padding: 0; border: 0; background: none; color: var(--accent); text-align: left; white-space: normal; }
button.link:hover { text-decoration: underline; }
.tabs { display: flex; flex-wrap: wrap; gap: 2px; margin-top: 12px; border-bottom: 1px solid var(--line); }
.tabs span { position: relative; }
.tabs input { position: absolute; inset: 0; width: 100%; height: 100%; margin: 0; opacity: 0; cursor: pointer; }
.tabs label { display: block; padding: 5px 11px 6px; font-size: 13px; border-bottom: 2px solid transparent; margin-bottom: -1px; }
.tabs input:checked + label { color: var(--ink); font-weight: 600; border-bottom-color: var(--accent); }
.tabs input:focus-visible + label { outline: 2px solid var(--accent); outline-offset: -2px; border-radius: 3px; }
.note { color: var(--soft); font-size: 13px; margin-top: 10px; }
.wrong { color: var(--bad); margin-top: 10px; }
.items th small { display: block; font-family: system-ui, sans-serif; margin-top: 1px; }
.items td, .items th { overflow-wrap: anywhere; }
.items .owner { white-space: nowrap; }
.catalogue > .main { margin-top: 12px; }

.reader { position: sticky; top: 14px; max-height: calc(100vh - 28px); overflow: auto; }
.answer[aria-busy] { opacity: .5; }
.how { display: flex; align-items: center; gap: 12px; margin: 14px 0 12px; padding: 10px 12px; background: var(--sunken); border-radius: 6px; }
.how p:nth-child(2) { flex: 1 1 200px; font-size: 13px; }
.verdict { padding: 2px 9px; border-radius: 4px; border: 1px solid currentColor; background: none; font-weight: 650; font-size: 13px; white-space: nowrap; }
.verdict.good { color: var(--good); } .verdict.warn { color: var(--warn); } .verdict.none { color: var(--soft); }
figure { margin-top: 16px; }
figcaption { font-size: 12px; color: var(--soft); margin-bottom: 6px; overflow-wrap: anywhere; }
figcaption b { color: var(--ink); font-weight: 600; margin-right: 6px; }
figcaption code { display: block; font-size: 12px; }
pre { margin: 0; padding: 12px; max-height: 440px; overflow: auto; background: var(--sunken); border-radius: 6px; white-space: pre-wrap; }
.hex { white-space: pre; }
.config pre { max-height: none; margin-top: 12px; }
.config .note { margin-top: -6px; }
img { display: block; max-width: 100%; max-height: 440px; min-width: 24px; min-height: 24px; image-rendering: auto; border: 1px solid var(--line); background: repeating-conic-gradient(var(--sunken) 0 25%, var(--surface) 0 50%) 0 / 16px 16px; }
.odd { color: var(--bad); background: var(--sunken); font-family: var(--mono); font-size: 11px; border-radius: 2px; }

dialog { width: min(440px, 92vw); padding: 20px 22px; color: var(--ink); background: var(--surface); border: 1px solid var(--edge); border-radius: 10px; box-shadow: 0 12px 40px #0005; }
dialog::backdrop { background: #0b110e99; }
dialog h2 { font-size: 16px; }
dialog .what { overflow-wrap: anywhere; max-height: 40vh; overflow: auto; }
dialog label { display: block; margin: 14px 0 3px; }
.buttons { display: flex; justify-content: flex-end; gap: 10px; margin-top: 18px; }
.token p { color: var(--soft); } .token p.wrong { color: var(--bad); }

@media (min-width: 1100px) { .cache .facts { grid-template-columns: minmax(0, 1fr) minmax(0, 1.7fr) repeat(6, minmax(0, 1fr)); } }
@media (max-width: 900px) {
  header, main, footer { padding-left: 14px; padding-right: 14px; }
  .vitals { grid-template-columns: repeat(3, minmax(0, 1fr)); }
  .vitals > div:nth-child(4) { border-left: 0; }
  .vitals > div:nth-child(n + 4) { border-top: 1px solid var(--line); }
  .panels > .panel { grid-column: 1 / -1; }
  .browser { grid-template-columns: minmax(0, 1fr); }
  .reader { position: static; max-height: none; }
}
@media (max-width: 620px) {
  header { flex-wrap: wrap; height: auto; gap: 0 14px; padding-top: 12px; }
  nav { order: 1; width: 100%; margin: 6px 0 12px -10px; }
  nav a { padding: 6px 10px; }
  .vitals { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  .vitals > div { border-left: 0; border-top: 1px solid var(--line); }
  .vitals > div:nth-child(-n + 2) { border-top: 0; }
  .vitals > div:nth-child(even) { border-left: 1px solid var(--line); }
  .legend .axis { margin-left: 0; }
  .controls, .how { flex-wrap: wrap; }
  .upstreams thead { display: none; }
  .upstreams tr { display: grid; grid-template-columns: repeat(3, 1fr); gap: 8px 14px; padding: 12px 0; border-top: 1px solid var(--line); }
  .upstreams tr:first-child { border-top: 0; padding-top: 0; }
  .upstreams th, .upstreams td { display: block; border: 0; padding: 0; text-align: left; }
  .upstreams th { grid-column: 1 / -1; }
  .upstreams td:not(.action) { white-space: normal; }
  .upstreams td::before { content: attr(data-label); display: block; color: var(--soft); font-size: 12px; }
  .upstreams .action { grid-column: 1 / -1; }
  .upstreams .action::before { content: none; }
}
@media (prefers-reduced-motion: no-preference) {
  .answer { transition: opacity .2s; }
}
@media (forced-colors: active) {
  .chart .line { stroke: CanvasText; } .key, .chart rect { forced-color-adjust: none; }
}
`;
