/** The style of what single views of the console are made of. */
export const PARTS = `
.filter { position: relative; width: min(100%, 20rem); }

.filter kbd { position: absolute; right: .6rem; top: 50%; transform: translateY(-50%); pointer-events: none; }

.filter input:focus ~ kbd, .filter input:not(:placeholder-shown) ~ kbd { display: none; }

.table-frame { position: relative; background: var(--surface); border: 1px solid var(--line); border-radius: 12px; box-shadow: var(--shadow); overflow-x: auto; }

.table-frame.is-plain { border: 0; border-radius: 0; box-shadow: none; }

table { width: 100%; border-collapse: collapse; }

th { text-align: left; font-weight: inherit; }

thead th { padding: .7rem .75rem; color: var(--ink-quiet); font-size: .82rem; font-weight: 500; white-space: nowrap; }

tbody th, tbody td { padding: .62rem .75rem; border-top: 1px solid var(--line); vertical-align: middle; }

.table-frame :is(th, td):first-child { padding-left: 1.25rem; }

.table-frame :is(th, td):last-child { padding-right: 1.25rem; }

.number { text-align: right; white-space: nowrap; }

.streams tbody tr { position: relative; }

.streams tbody tr:hover { background: color-mix(in srgb, var(--accent-faint) 55%, transparent); }

.streams tbody th { min-width: 9rem; font-weight: 550; }

.streams tbody a { color: var(--ink); }

/* The whole line leads to the stream. */
.streams tbody a::after { content: ""; position: absolute; inset: 0; }

.streams tbody a:focus-visible { outline: none; }

.streams tbody tr:has(a:focus-visible) { outline: 2px solid var(--accent); outline-offset: -2px; border-radius: 6px; }

.mini { position: relative; display: block; width: clamp(4rem, 12vw, 10rem); height: 8px; border-radius: 4px; background: var(--sunken); }

.mini-kept { position: absolute; top: 0; bottom: 0; min-width: 2px; border-radius: 4px; background: var(--accent-soft); }

.mini-mark { position: absolute; top: -3px; bottom: -3px; width: 3px; margin-left: -1.5px; border-radius: 2px; background: var(--accent); transition: left .5s linear; }

/* Few lines, which would be far down below the streams. */
.mcp { order: -1; }

.main-column > button.plain { justify-self: center; }

.activity-list { display: grid; gap: .9rem; max-height: 34rem; overflow-y: auto; }

.happening { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: .1rem .8rem; font-size: .9rem; line-height: 1.4; }

.happening time { color: var(--ink-quiet); font-size: .84em; padding-top: .1em; }

.happening strong { font-weight: 600; }

.happening.is-good strong { color: var(--accent); }

.happening.is-refused strong { color: var(--bad); }

.facts { color: var(--ink-quiet); white-space: pre-wrap; overflow-wrap: anywhere; font-size: .8rem; }

.activity-list:not(:empty) + .quiet:not(:empty) { margin-top: .9rem; }

.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(6.5rem, 1fr)); gap: 1px; background: var(--line); border: 1px solid var(--line); border-radius: 12px; overflow: hidden; box-shadow: var(--shadow); }

.figures > div { padding: .8rem 1.1rem; background: var(--surface); }

.figures dt { color: var(--ink-quiet); font-size: .82rem; }

.figures dd { font-size: 1.25rem; font-weight: 600; letter-spacing: -.01em; white-space: nowrap; }

.bar { position: relative; margin: 0 .75rem; padding-top: 1.9rem; padding-bottom: 3.1rem; }

.bar-track { position: relative; height: 14px; border-radius: 7px; background: var(--sunken); overflow: hidden; }

.bar-part { position: absolute; top: 0; bottom: 0; transition: left .5s linear, width .5s linear; }

.is-ring { background: var(--accent-soft); }

.is-log { background: repeating-linear-gradient(-45deg, var(--accent-soft) 0 3px, var(--accent-faint) 3px 7px); }

.is-staged { background: repeating-linear-gradient(90deg, var(--warn-fill) 0 3px, transparent 3px 6px); }

.bar-marks { position: absolute; z-index: 1; left: 0; right: 0; top: 0; height: calc(1.9rem + 14px); }

.bar-marks.is-named { top: 1.9rem; height: calc(14px + 1rem); }

.bar .mark { position: absolute; top: 1.3rem; bottom: -3px; width: 3px; margin-left: -1.5px; border-radius: 2px; background: currentColor; transition: left .5s linear; }

.bar-marks.is-named .mark { top: -3px; bottom: 0; }

.mark-count { position: absolute; bottom: 100%; left: 50%; transform: translateX(-50%); font-size: .8rem; font-weight: 600; line-height: 1.4; }

.is-named .mark-count { bottom: auto; top: 100%; }

.is-ready, .state.is-ready { color: var(--accent); }

.bar .mark.is-stalled, .state.is-stalled { color: var(--warn); }

.bar .mark.is-waiting, .state.is-waiting { color: var(--wait); }

.bar .mark.is-named, .state.is-named { color: var(--named); }

.bar-ticks { position: absolute; left: 0; right: 0; bottom: 0; height: 1.3rem; }

.tick { position: absolute; transform: translateX(-50%); color: var(--ink-quiet); font-size: .78rem; }

.tick::before { content: ""; position: absolute; left: 50%; top: -.35rem; height: .3rem; border-left: 1px solid var(--line-strong); }

.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; margin-top: 1rem; color: var(--ink-quiet); font-size: .84rem; }

.legend li { display: flex; align-items: center; gap: .45rem; }

.swatch { width: 14px; height: 8px; border-radius: 3px; }

.swatch.mark { width: 3px; height: 14px; background: currentColor; }

.swatch.is-ready { color: var(--accent); }

.swatch.is-stalled { color: var(--warn); }

.swatch.is-waiting { color: var(--wait); }

.swatch.is-named { color: var(--named); }

.readers { font-size: .9rem; }

.readers thead th { padding: 0 .5rem .4rem; }

.readers :is(tbody th, tbody td) { padding: .45rem .5rem; }

.card .table-frame :is(th, td):first-child { padding-left: 0; }

.card .table-frame :is(th, td):last-child { padding-right: 0; }

.readers .kind { white-space: nowrap; }

.readers th .quiet { display: block; font-size: .84em; }

.readers + .quiet, .table-frame + .quiet:not(:empty) { margin-top: .75rem; font-size: .86rem; }

.state { white-space: nowrap; font-size: .92em; }

.event-list { border-top: 1px solid var(--line); margin: 0 -1.25rem -1.1rem; max-height: 40rem; overflow-y: auto; border-radius: 0 0 12px 12px; }

.event-list li + li { border-top: 1px solid var(--line); }

.event-list summary { display: flex; align-items: baseline; gap: .8rem; padding: .5rem 1.25rem; cursor: pointer; list-style: none; }

.event-list summary::-webkit-details-marker { display: none; }

.event-list summary:hover { background: color-mix(in srgb, var(--accent-faint) 55%, transparent); }

.event-list summary:focus-visible { outline-offset: -2px; border-radius: 6px; }

.event-list .seq { color: var(--ink-quiet); min-width: 3.5rem; text-align: right; }

.event-list .data { min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }

.event-body { display: grid; gap: .3rem; padding: 0 1.25rem 1rem 5.55rem; font-size: .9rem; }

.event-body pre { padding: .7rem .9rem; background: var(--sunken); border-radius: 8px; max-height: 24rem; overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere; }

.event-note { padding: .55rem 1.25rem; font-size: .9rem; color: var(--ink-quiet); background: var(--sunken); }

.event-note.is-refused { color: var(--bad); background: var(--bad-faint); }

.events:not(:has(.event-list li)) .event-list { display: none; }

form.publish { display: grid; gap: .75rem; }

label:not(.check) { display: grid; gap: .25rem; color: var(--ink-quiet); font-size: .88rem; }

label:not(.check) > :is(input, textarea) { color: var(--ink); }

.form-end { display: flex; flex-wrap: wrap; align-items: center; gap: .4rem .9rem; }

.form-end .quiet { font-size: .84rem; }

.result { flex-basis: 100%; font-size: .88rem; overflow-wrap: anywhere; }

.result:empty { display: none; }

.result.is-good { color: var(--accent); }

.result.is-refused { color: var(--bad); }

.login { display: grid; gap: .8rem; max-width: 26rem; margin: 8vh auto 0; padding: 2rem; }

.login button { justify-self: start; }

@media (max-width: 44rem) {
  .filter kbd { display: none; }

  .content { padding-top: 1.25rem; }

  .page-head { align-items: stretch; flex-direction: column; }

  .filter { width: 100%; }

  .streams thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }

  .streams, .streams tbody { display: block; }

  .streams tbody tr { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: .35rem .75rem; padding: .9rem 1.1rem; }

  .streams tbody tr + tr { border-top: 1px solid var(--line); }

  .streams tbody :is(th, td) { padding: 0 !important; border: 0; }

  .streams tbody :is(th, .mini-cell) { grid-column: 1 / -1; }

  .mini { width: 100%; }

  .streams tbody td.number { text-align: left; }

  .streams tbody td[data-label]::before { content: attr(data-label); display: block; color: var(--ink-quiet); font-size: .78rem; font-weight: 400; }

  .event-body { padding-left: 1.25rem; }
}
`;
