/** Asks for the token of an operator. */

import { element, say } from './element.js';

/**
 * @param why what was wrong with the last one; empty at first.
 * @param signIn tries a token. @returns what is wrong with it; empty when nothing is, and the view has gone.
 */
export function loginView(why: string, signIn: (token: string) => Promise<string>): HTMLElement {
  const input = element('input', {
    type: 'password',
    id: 'token',
    required: true,
    autocomplete: 'off',
    spellcheck: 'false',
    maxlength: 8192,
    'aria-describedby': 'login-why',
  });
  const button = element('button', { type: 'submit' }, 'Sign in');
  const problem = element('p', { class: 'result is-refused', role: 'alert', id: 'login-why' }, why);
  const form = element(
    'form',
    { class: 'card login' },
    element('h1', { id: 'title', tabindex: -1 }, 'Sign in'),
    element(
      'p',
      { class: 'quiet' },
      'A token or a key with the right to administer. It is kept until this tab is closed.',
    ),
    element('label', { for: 'token' }, 'Token'),
    input,
    problem,
    button,
  );
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void submit();
  });
  const submit = async (): Promise<void> => {
    button.disabled = true;
    say(problem, await signIn(input.value.trim()));
    button.disabled = false;
    input.select();
  };
  return form;
}
