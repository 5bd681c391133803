/** Publishes a test event, by `gapless/client`: once, however often it had to be sent. */

import { GaplessError } from '../../client/client.js';
import { type App, hrefOf } from './app.js';
import { element, fill } from './element.js';

/** @param stream null: the form asks for it, and goes there when it is published. */
export function publishForm(app: App, stream: string | null): HTMLElement {
  const { form, name, type, data, button, result } = emptyForm(stream === null);

  const publish = async (): Promise<void> => {
    // By the keyboard it can be sent although the button cannot be pressed.
    if (button.disabled) return;
    const target = stream ?? name.value.trim();
    const given = data.value;
    button.disabled = true;
    fill(result);
    try {
      const typed = type.value === '' ? {} : { type: type.value };
      const { cursor } = await app.broker.client.publish(target, given, typed);
      fill(result, 'Published as ', element('code', {}, cursor));
      result.className = 'result is-good';
      // What was written meanwhile is the next one.
      if (data.value === given) data.value = '';
      if (stream === null) location.hash = hrefOf(target);
    } catch (error) {
      if (!(error instanceof GaplessError)) throw error;
      fill(result, app.isForbidden(error) ? 'This token may not publish to this stream.' : error.message);
      result.className = 'result is-refused';
    } finally {
      button.disabled = false;
    }
  };
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void publish();
  });
  data.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    form.requestSubmit();
  });
  return form;
}

function emptyForm(asksForName: boolean) {
  const plain = { spellcheck: 'false', autocomplete: 'off' };
  const name = element('input', { type: 'text', value: 'demo', required: true, maxlength: 200, ...plain });
  const type = element('input', { type: 'text', placeholder: 'message', maxlength: 128, ...plain });
  const data = element('textarea', {
    rows: 3,
    placeholder: '{"hello": "world"}',
    spellcheck: 'false',
    'aria-keyshortcuts': 'Control+Enter',
  });
  const button = element('button', { type: 'submit' }, 'Publish');
  const result = element('p', { class: 'result', role: 'status' });
  const hint = element('span', { class: 'quiet' }, 'Ctrl + Enter');
  const form = element(
    'form',
    { class: 'publish' },
    asksForName ? element('label', {}, 'Stream', name) : element('label', {}, 'Type', type),
    element('label', {}, 'Data', data),
    element('div', { class: 'form-end' }, button, hint, result),
  );
  return { form, name, type, data, button, result };
}
