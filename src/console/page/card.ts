/** The boxes of which the views consist. */

import { type Child, element } from './element.js';

export interface CardOptions {
  /** With `-title` the id of its title in the document. */
  readonly name: string;
  readonly title: string;
  /** What stands beside the title. */
  readonly beside?: readonly Child[];
}

export function card({ name, title, beside = [] }: CardOptions, ...content: readonly Child[]): HTMLElement {
  const id = `${name}-title`;
  return element(
    'section',
    { class: 'card', 'aria-labelledby': id },
    element('div', { class: 'card-head' }, element('h2', { id }, title), ...beside),
    ...content,
  );
}
