/**
 * A list by keyboard: Tab comes to one of its items, the arrow keys, Home and End go to the others.
 */

const MOVES: Readonly<Record<string, (at: number, count: number) => number>> = {
  ArrowDown: (at, count) => Math.min(at + 1, count - 1),
  ArrowUp: (at) => Math.max(at - 1, 0),
  Home: () => 0,
  End: (_at, count) => count - 1,
};

export class RovingFocus {
  readonly #list: HTMLElement;
  readonly #selector: string;

  /** @param selector of what in the list can have the focus. */
  constructor(list: HTMLElement, selector: string) {
    this.#list = list;
    this.#selector = selector;
    list.addEventListener('keydown', (event) => this.#move(event));
    list.addEventListener('focusin', (event) => this.#reach(event.target));
  }

  /** After items came or went. */
  settle(): void {
    const items = this.#items();
    const reached = items.find((item) => item.tabIndex === 0 && item.hasAttribute('tabindex')) ?? items[0];
    this.#reach(reached ?? null);
  }

  #move(event: KeyboardEvent): void {
    const move = MOVES[event.key];
    if (move === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    const items = this.#items();
    const at = items.indexOf(document.activeElement as HTMLElement);
    if (at < 0) return;
    event.preventDefault();
    items[move(at, items.length)]?.focus();
  }

  #reach(target: EventTarget | null): void {
    const items = this.#items();
    if (!items.includes(target as HTMLElement)) return;
    for (const item of items) item.tabIndex = item === target ? 0 : -1;
  }

  #items(): HTMLElement[] {
    return [...this.#list.querySelectorAll<HTMLElement>(this.#selector)];
  }
}
