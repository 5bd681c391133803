/** Tables of streams, readers and servers. */

import { element } from './element.js';

/** @param numbersFrom index of the first column that has numbers. */
export function tableHead(titles: readonly string[], numbersFrom: number): HTMLElement {
  const cells = titles.map((title, index) =>
    element('th', { scope: 'col', class: index >= numbersFrom ? 'number' : '' }, title),
  );
  return element('thead', {}, element('tr', {}, ...cells));
}
