/** The style of the console: its colours and type, the frame of the page, and what all views share. */

import { PARTS } from './style-parts.js';

const BASE = `
:root {
  color-scheme: light dark;
  --ground: #f6f6f3;
  --surface: #ffffff;
  --sunken: #efefeb;
  --ink: #1d2021;
  --ink-quiet: #62676b;
  --line: #e2e2dc;
  --line-strong: #c9c9c1;
  --accent: #0f766e;
  --accent-ink: #ffffff;
  --accent-soft: #9fd3cc;
  --accent-faint: #e3f1ef;
  --warn: #9a5b00;
  --warn-fill: #d98e1f;
  --bad: #b3261e;
  --bad-faint: #fbeceb;
  --wait: #3b5bb5;
  --named: #6d4bb0;
  --shadow: 0 1px 2px rgb(20 24 26 / 5%), 0 4px 16px rgb(20 24 26 / 4%);
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", "Liberation Mono", Menlo, Consolas, monospace;
  --sans: system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif;
}

@media (prefers-color-scheme: dark) {
  :root {
    --ground: #111415;
    --surface: #191d1e;
    --sunken: #22282a;
    --ink: #e7e9e8;
    --ink-quiet: #98a09f;
    --line: #2a3032;
    --line-strong: #414a4c;
    --accent: #56c2b3;
    --accent-ink: #0c1a18;
    --accent-soft: #2f6d66;
    --accent-faint: #17302d;
    --warn: #e9ae56;
    --warn-fill: #e0a044;
    --bad: #f2897f;
    --bad-faint: #35201e;
    --wait: #8fa8f0;
    --named: #b79cf0;
    --shadow: none;
  }
}

* { box-sizing: border-box; }

/* What is hidden stays so, whatever else says how it is laid out. */
[hidden] { display: none !important; }

html { font: 15px/1.5 var(--sans); background: var(--ground); color: var(--ink); }

body { margin: 0; min-height: 100vh; }

h1, h2, p, ol, ul, dl, dd, pre, figure { margin: 0; padding: 0; }

h1 { font-size: 1.6rem; font-weight: 650; line-height: 1.25; letter-spacing: -.015em; }

h2 { font-size: .95rem; font-weight: 650; }

ol, ul { list-style: none; }

a { color: var(--accent); text-decoration: none; }

a:hover { text-decoration: underline; text-underline-offset: .2em; }

code, pre, kbd, .facts, .seq, .data { font-family: var(--mono); font-size: .86em; }

.number, .seq, .tick, dd, time, .mark { font-variant-numeric: tabular-nums; }

.quiet { color: var(--ink-quiet); }

.name { overflow-wrap: anywhere; }

:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px; }

main:focus, h1:focus { outline: none; }

.skip { position: absolute; left: 1rem; top: -4rem; z-index: 3; padding: .5rem 1rem; background: var(--surface); }

.skip:focus { top: .5rem; }

.top {
  position: sticky; top: 0; z-index: 2;
  display: flex; align-items: center; justify-content: space-between; gap: 1rem;
  height: 3.5rem; padding: 0 clamp(1rem, 3vw, 2.5rem);
  background: color-mix(in srgb, var(--ground) 88%, transparent);
  backdrop-filter: blur(10px);
  border-bottom: 1px solid var(--line);
}

.brand { display: flex; align-items: center; gap: .6rem; color: var(--ink); font-weight: 650; letter-spacing: -.01em; }

.brand:hover { text-decoration: none; }

.content { max-width: 92rem; margin: 0 auto; padding: 2rem clamp(1rem, 3vw, 2.5rem) 4rem; }

.notice:not(:empty) {
  padding: .6rem clamp(1rem, 3vw, 2.5rem);
  background: var(--bad-faint); color: var(--bad); border-bottom: 1px solid var(--line);
}

.page-head {
  display: flex; flex-wrap: wrap; align-items: end; justify-content: space-between; gap: 1rem;
}

.stream > .page-head { margin-bottom: 1.5rem; }

.title-line { display: flex; flex-wrap: wrap; align-items: center; gap: .25rem .75rem; }

.columns { display: grid; gap: 1.5rem; grid-template-columns: minmax(0, 1fr); align-items: start; }

.main-column, .side-column { display: grid; gap: 1.5rem; grid-template-columns: minmax(0, 1fr); min-width: 0; }

@media (min-width: 72rem) {
  .columns { grid-template-columns: minmax(0, 1fr) minmax(19rem, 24rem); }
}

.card { background: var(--surface); border: 1px solid var(--line); border-radius: 12px; padding: 1.1rem 1.25rem; box-shadow: var(--shadow); }

.card-head { display: flex; flex-wrap: wrap; align-items: baseline; gap: .25rem .75rem; margin-bottom: .9rem; }

.card-head > :last-child:not(:first-child), .card-end { margin-left: auto; }

.card-end { display: flex; align-items: baseline; gap: .75rem; }

.empty { padding: 3.5rem 1.5rem; text-align: center; border: 1px dashed var(--line-strong); border-radius: 12px; }

.empty h2 { font-size: 1.15rem; margin-bottom: .35rem; }

.empty form { max-width: 26rem; margin: 1.5rem auto 0; text-align: left; }

.tag {
  display: inline-block; padding: .05rem .45rem; border-radius: 5px; vertical-align: middle;
  background: var(--sunken); color: var(--ink-quiet); font-size: .8rem; font-weight: 500;
}

th .tag { margin-left: .5rem; }

button, input, textarea { font: inherit; color: inherit; }

button {
  padding: .45rem .95rem; border: 1px solid transparent; border-radius: 8px;
  background: var(--accent); color: var(--accent-ink); font-weight: 600; cursor: pointer;
}

button:hover { filter: brightness(1.07); }

button:disabled { opacity: .55; cursor: default; }

button.plain { padding: .2rem .6rem; background: none; border-color: var(--line-strong); color: var(--ink); font-size: .88rem; font-weight: 500; }

button.plain:hover { background: var(--sunken); filter: none; }

button.plain[aria-pressed="true"] { background: var(--accent-faint); border-color: var(--accent); }

input:not([type="checkbox"]), textarea {
  width: 100%; padding: .45rem .7rem; border: 1px solid var(--line-strong); border-radius: 8px; background: var(--surface);
}

input::placeholder, textarea::placeholder { color: var(--ink-quiet); opacity: .75; }

textarea { resize: vertical; font-family: var(--mono); font-size: .88rem; }

input:not([type="checkbox"]):focus-visible, textarea:focus-visible { outline-offset: -1px; border-radius: 8px; }

input[type="checkbox"] { accent-color: var(--accent); margin: 0; }

.check { display: inline-flex; align-items: center; gap: .45rem; color: var(--ink-quiet); font-size: .88rem; }

kbd { padding: .05rem .4rem; border: 1px solid var(--line-strong); border-radius: 5px; color: var(--ink-quiet); }

.is-behind { color: var(--warn); font-weight: 600; }

.is-quiet { color: var(--ink-quiet); }

@media (prefers-reduced-motion: reduce) {
  *, *::before, *::after { transition: none !important; animation: none !important; }
}
`;

export const STYLE = BASE + PARTS;
