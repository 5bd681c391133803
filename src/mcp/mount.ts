/** A server behind the front and how it is reached, as the setting `mcp` has it: `/path=URL` or `/path=stdio:CMD ARGS`. */
export interface Mount {
  readonly path: string;
  readonly target:
    | { readonly kind: 'http'; readonly url: URL }
    | { readonly kind: 'stdio'; readonly command: readonly string[] };
}

const STDIO = 'stdio:';
/** A word, or what stands in quotes; no shell reads it. */
const WORD = /"([^"]*)"|'([^']*)'|(\S+)/g;

/** @param text one item of the setting, which was checked. */
export function readMount(text: string): Mount {
  const equals = text.indexOf('=');
  const path = text.slice(0, equals);
  const target = text.slice(equals + 1);
  if (!target.startsWith(STDIO)) return { path, target: { kind: 'http', url: new URL(target) } };
  const words = target.slice(STDIO.length).matchAll(WORD);
  return { path, target: { kind: 'stdio', command: [...words].map(([, a, b, c]) => a ?? b ?? c ?? '') } };
}
