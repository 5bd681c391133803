/** An event as it came, before its data is decoded. */
export interface RawEvent {
  /** The cursor of one who has seen this event: what to resume from. */
  readonly id: string;
  /** `message` for an untyped event. */
  readonly type: string;
  /** Text, or the bytes of a binary event. */
  readonly data: string | Uint8Array<ArrayBuffer>;
}

/** An event with its data decoded. */
export interface StreamEvent<T> {
  readonly id: string;
  readonly type: string;
  readonly data: T;
}

/** Makes of an event what the program wants of it. What it throws ends the subscription. */
export type Decode<T> = (event: RawEvent) => T;

/** Text as it is. @throws {TypeError} for a binary event. */
export const text: Decode<string> = ({ id, data }) => {
  if (typeof data === 'string') return data;
  throw new TypeError(`event ${id} is binary, and text was expected`);
};

/**
 * Data that is JSON. Its type is the program's own claim: `decode: json<Order>`.
 * @throws {SyntaxError} for anything else.
 */
export function json<T>(event: RawEvent): T {
  return JSON.parse(text(event)) as T;
}

/** The data as bytes, of text in UTF-8. */
export const bytes: Decode<Uint8Array> = ({ data }) =>
  typeof data === 'string' ? new TextEncoder().encode(data) : data;

/** The bytes of base64, as `data` has it under `encoding: base64` (contract 4.3). */
export function fromBase64(base64: string): Uint8Array<ArrayBuffer> {
  const characters = atob(base64);
  const result = new Uint8Array(characters.length);
  for (let i = 0; i < characters.length; i++) result[i] = characters.charCodeAt(i);
  return result;
}
