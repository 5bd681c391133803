/** What is kept of a stream, from its floor to its head, drawn as a bar with everybody who reads it. */

import { floorOf } from '../../client/stream-state.js';
import type { NamedSubscriber, Reader, ReadStream } from './broker.js';
import { card } from './card.js';
import { element, fill, say, setAttribute } from './element.js';
import { count, counted } from './format.js';
import { type Mark, marksOf, percentOf, type Span, spanOfKept, spanOfReaders, ticksOf } from './scale.js';

/** The state of a mark is that of whoever of it is worst off. */
const WORST = ['stalled', 'waiting', 'ready'];

export class PositionBar {
  readonly root: HTMLElement;
  readonly #picture: HTMLElement;
  readonly #parts = {
    log: element('span', { class: 'bar-part is-log' }),
    ring: element('span', { class: 'bar-part is-ring' }),
    staged: element('span', { class: 'bar-part is-staged' }),
  };
  readonly #readers = element('div', { class: 'bar-marks' });
  readonly #named = element('div', { class: 'bar-marks is-named' });
  readonly #ticks = element('div', { class: 'bar-ticks' });
  readonly #legend: Record<'log' | 'staged' | 'named' | 'stalled' | 'waiting', HTMLElement>;
  readonly #zoom = element(
    'button',
    { type: 'button', class: 'plain', 'aria-pressed': 'false' },
    'Zoom to readers',
  );
  #isZoomed = false;
  #shown: ReadStream | null = null;

  constructor() {
    const { log, ring, staged } = this.#parts;
    this.#picture = element(
      'div',
      { class: 'bar', role: 'img' },
      this.#readers,
      element('div', { class: 'bar-track' }, log, ring, staged),
      this.#named,
      this.#ticks,
    );
    this.#legend = {
      log: legend('is-log', 'in the durable log'),
      staged: legend('is-staged', 'waits for its commit'),
      stalled: legend('mark is-stalled', 'its socket is full'),
      waiting: legend('mark is-waiting', 'is being read to from the log'),
      named: legend('mark is-named', 'a named subscriber has acknowledged'),
    };
    const { stalled, waiting, named } = this.#legend;
    this.root = card(
      { name: 'positions', title: 'Positions', beside: [this.#zoom] },
      this.#picture,
      element(
        'ul',
        { class: 'legend' },
        legend('is-ring', 'in memory'),
        this.#legend.log,
        this.#legend.staged,
        legend('mark is-ready', 'a reader has been sent'),
        stalled,
        waiting,
        named,
      ),
    );
    this.#zoom.addEventListener('click', () => {
      this.#isZoomed = !this.#isZoomed;
      setAttribute(this.#zoom, 'aria-pressed', String(this.#isZoomed));
      say(this.#zoom, this.#isZoomed ? 'Show all that is kept' : 'Zoom to readers');
      if (this.#shown !== null) this.update(this.#shown);
    });
  }

  update(stream: ReadStream): void {
    this.#shown = stream;
    const { committed, epoch, floor, head } = stream;
    const lowest = floorOf(stream);
    const named = stream.named.filter(({ acked }) => acked.startsWith(`${epoch}.`));
    const readers = stream.readers.slowest;
    const seqs = [...readers.map(({ delivered }) => delivered), ...named.map(seqOfNamed)];
    const span = this.#isZoomed ? spanOfReaders(seqs, lowest, head) : spanOfKept(lowest, head);
    place(this.#parts.log, lowest - 1, Math.min(floor - 1, committed), span);
    place(this.#parts.ring, Math.min(floor - 1, committed), committed, span);
    place(this.#parts.staged, committed, head, span);
    showMarks(
      this.#readers,
      marksOf(readers, ({ delivered }) => delivered, span),
      ofReaders,
    );
    showMarks(this.#named, marksOf(named, seqOfNamed, span), ofNamed);
    showTicks(this.#ticks, span);
    const states = new Set(readers.map(({ state }) => state));
    this.#legend.log.hidden = stream.logFloor === null;
    this.#legend.staged.hidden = head === committed;
    this.#legend.stalled.hidden = !states.has('stalled');
    this.#legend.waiting.hidden = !states.has('waiting');
    this.#legend.named.hidden = named.length === 0;
    setAttribute(this.#picture, 'aria-label', inWords(stream, lowest));
  }
}

function legend(kind: string, text: string): HTMLElement {
  return element('li', {}, element('span', { class: `swatch ${kind}` }), text);
}

/** From after one seq to another. */
function place(part: HTMLElement, after: number, to: number, span: Span): void {
  const left = percentOf(after, span);
  part.style.left = `${left}%`;
  part.style.width = `${Math.max(0, percentOf(to, span) - left)}%`;
}

interface MarkLook {
  readonly kind: string;
  readonly title: string;
}

/** Marks that are there already are moved, so that one sees them move. The last is that at the head, mostly. */
function showMarks<R>(
  row: HTMLElement,
  marks: readonly Mark<R>[],
  look: (readers: readonly R[]) => MarkLook,
): void {
  while (row.childElementCount > marks.length) row.firstElementChild?.remove();
  while (row.childElementCount < marks.length)
    row.prepend(element('span', {}, element('span', { class: 'mark-count' })));
  marks.forEach(({ percent, readers }, index) => {
    const mark = row.children[index] as HTMLElement;
    const { kind, title } = look(readers);
    mark.className = `mark ${kind}`;
    mark.style.left = `${percent}%`;
    mark.title = title;
    say(mark.firstElementChild as Element, readers.length > 1 ? count(readers.length) : '');
  });
}

function ofReaders(readers: readonly Reader[]): MarkLook {
  const state = WORST.find((worst) => readers.some((reader) => reader.state === worst)) ?? 'ready';
  const seqs = readers.map(({ delivered }) => delivered);
  const [least, most] = [Math.min(...seqs), Math.max(...seqs)];
  const at = least === most ? count(least) : `${count(least)} to ${count(most)}`;
  return { kind: `is-${state}`, title: `${counted(readers.length, 'reader')} at ${at}` };
}

function ofNamed(named: readonly NamedSubscriber[]): MarkLook {
  return { kind: 'is-named', title: named.map(({ name, acked }) => `${name} at ${acked}`).join('\n') };
}

export function seqOfNamed({ acked }: NamedSubscriber): number {
  return Number(acked.slice(acked.indexOf('.') + 1));
}

function showTicks(row: HTMLElement, span: Span): void {
  const ticks = ticksOf(span);
  const key = `${span.from}-${span.to}`;
  if (row.dataset['span'] === key) return;
  row.dataset['span'] = key;
  fill(
    row,
    ...ticks.map((seq) => {
      const tick = element('span', { class: 'tick' }, count(seq));
      tick.style.left = `${percentOf(seq, span)}%`;
      return tick;
    }),
  );
}

function inWords({ committed, head, readers, named }: ReadStream, floor: number): string {
  const kept = head < floor ? 'No event is kept' : `Events ${count(floor)} to ${count(head)} are kept`;
  const [slowest] = readers.slowest;
  const behind =
    slowest === undefined
      ? ''
      : `, the slowest of them ${count(committed - slowest.delivered)} events behind`;
  return `${kept}. ${counted(readers.total, 'reader')}${behind}. ${counted(named.length, 'named subscriber')}.`;
}
