/**
 * Has a generator end at once when whoever iterates leaves: by itself it ends between two items only.
 * @param leave called first, to end what it waits for.
 */
export function leavable<T>(
  items: AsyncGenerator<T, void, void>,
  leave: () => void,
): AsyncGenerator<T, void, void> {
  const end = items.return.bind(items);
  items.return = (value) => {
    leave();
    return end(value);
  };
  return items;
}

/** What a source gives, until the signal is aborted: a source that says nothing for long is not waited for. */
export async function* untilAborted<T>(
  source: AsyncIterable<T> | Iterable<T>,
  signal: AbortSignal | undefined,
): AsyncGenerator<T, void, void> {
  const items = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
  let isOver = false;
  try {
    for (;;) {
      const { done, value } = await abortable(Promise.resolve(items.next()), signal);
      isOver = done === true;
      if (isOver) return;
      yield value as T;
    }
  } finally {
    if (!isOver) void Promise.resolve(items.return?.()).catch(() => undefined);
  }
}

/** What a promise comes to, unless the signal is aborted before. @throws the signal's reason */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    const forget = (): void => signal.removeEventListener('abort', abort);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(forget);
  });
}
