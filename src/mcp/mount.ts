/** A server behind the front and where it is reached, as the setting `mcp` has it: `/path=URL`. */
export interface Mount {
  readonly path: string;
  readonly url: URL;
}

/** @param text one item of the setting, which was checked. */
export function readMount(text: string): Mount {
  const equals = text.indexOf('=');
  return { path: text.slice(0, equals), url: new URL(text.slice(equals + 1)) };
}
