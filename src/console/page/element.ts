/**
 * Elements from what they are made of. Names and data of others get into the page here, as text and as nothing else: no
 * part of the console makes markup of a string.
 */

/** What an element may hold; null: nothing. */
export type Child = Node | string | number | null;

export interface Attributes {
  readonly [name: string]: string | boolean | number | null | undefined;
}

/** Absent, null and false attributes are left out; true ones are there without a value. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) setAttribute(made, name, value);
  made.append(...present(children));
  return made;
}

export function setAttribute(target: Element, name: string, value: Attributes[string]): void {
  if (value === null || value === undefined || value === false) target.removeAttribute(name);
  else target.setAttribute(name, value === true ? '' : String(value));
}

/** Exchanges what an element holds. */
export function fill(target: Element, ...children: readonly Child[]): void {
  target.replaceChildren(...present(children));
}

/** Sets the text where it is another: what has not changed is not painted again, and not read out. */
export function say(target: Element, text: string): void {
  if (target.textContent !== text) target.textContent = text;
}

function present(children: readonly Child[]): (Node | string)[] {
  return children
    .filter((child) => child !== null)
    .map((child) => (child instanceof Node ? child : String(child)));
}
