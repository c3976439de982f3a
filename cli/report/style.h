#pragma once

#include <string_view>

namespace rankrun::cli {

// Style of a report's page, for light and dark schemes, and for paper.
constexpr std::string_view kReportStyle = R"css(
:root { color-scheme: light dark; --page: #f6f7f9; --card: #fff; --text: #1c2430; --quiet: #5d6878;
  --line: #dfe4ea; --band: #eef1f5; --cause: #d0342c; --cause-soft: #fdecea; --then: #e0a33b;
  --good: #2f9e6e; --good-soft: #e6f5ee; --unknown: #9aa5b4; --ink: #10243e; }
@media (prefers-color-scheme: dark) {
  :root { --page: #12161c; --card: #1a2029; --text: #e4e9f0; --quiet: #95a1b2; --line: #2c3542;
    --band: #212936; --cause: #ff6b61; --cause-soft: #3a2022; --then: #d79a36; --good: #45c08b;
    --good-soft: #17332a; --unknown: #657184; --ink: #dbe6f5; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); line-height: 1.45;
  font: 15px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 28px 20px 48px; }
header { margin-bottom: 22px; }
h1 { font-size: 25px; margin: 8px 0 2px; line-height: 1.25; overflow-wrap: anywhere; }
h2 { font-size: 16px; margin: 0 0 12px; }
h3 { font-size: 15px; margin: 0 0 6px; overflow-wrap: anywhere; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 18px 20px; margin: 0 0 16px; }
.quiet { color: var(--quiet); margin: 2px 0; overflow-wrap: anywhere; }
.chip { display: inline-block; border-radius: 999px; padding: 2px 12px; font-weight: 600;
  font-size: 13px; background: var(--cause-soft); color: var(--cause); }
.chip.good { background: var(--good-soft); color: var(--good); }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, auto)); gap: 10px 18px;
  margin: 16px 0 0; }
dt { color: var(--quiet); font-size: 12.5px; }
dd { margin: 0; overflow-wrap: anywhere; }
dl.wide { grid-template-columns: 1fr; }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: 13px; }
pre { background: var(--band); border-radius: 7px; padding: 11px 13px; margin: 8px 0 12px;
  white-space: pre-wrap; overflow-wrap: anywhere; max-height: 28em; overflow: auto; }
.failure { border-left: 3px solid var(--cause); padding: 1px 0 1px 14px; margin: 0 0 18px; }
.failure:last-child { margin-bottom: 0; }
table { border-collapse: collapse; width: 100%; font-size: 14px; margin-bottom: 10px; }
th { text-align: left; color: var(--quiet); font-weight: 500; font-size: 12.5px; }
th, td { padding: 5px 14px 5px 0; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: anywhere; }
tr:last-child td { border-bottom: 0; }
td.number { white-space: nowrap; font-variant-numeric: tabular-nums; }
summary { cursor: pointer; font-weight: 600; font-size: 16px; }
.scroll { overflow-x: auto; }
svg { width: 100%; min-width: 640px; height: auto; display: block; }
svg text { font-size: 12px; fill: var(--quiet); }
svg .label { fill: var(--text); }
svg .end { text-anchor: end; }
svg .middle { text-anchor: middle; }
svg .attempt { fill: var(--quiet); font-weight: 600; }
.grid { stroke: var(--line); stroke-width: 1; }
.band { fill: var(--band); fill-opacity: 0.75; }
.bar.cause { fill: var(--cause); }
.bar.consequence { fill: var(--then); }
.bar.succeeded { fill: var(--good); }
.bar.unknown { fill: var(--unknown); }
.mark { fill: var(--cause); stroke: var(--card); stroke-width: 1.6; }
.operation { fill: var(--card); stroke: var(--ink); stroke-width: 1.4; }
.operation.open { fill: var(--ink); }
.key { display: flex; flex-wrap: wrap; gap: 4px 20px; margin: 10px 0 0; padding: 0;
  list-style: none; color: var(--quiet); font-size: 13px; }
.key i { display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 7px;
  vertical-align: -1px; }
.key .dot { border-radius: 50%; border: 1.6px solid var(--ink); width: 9px; height: 9px; }
.key .dot.open { background: var(--ink); }
.key .cause { background: var(--cause); } .key .then { background: var(--then); }
.key .good { background: var(--good); } .key .unknown { background: var(--unknown); }
@media print { body { background: #fff; } section { break-inside: avoid; } }
)css";

}  // namespace rankrun::cli
