/** A call that is waited for as a whole, as the one that begins a session is. */

import type { RpcError, RpcMessage } from '../json-rpc.js';
import type { MessageSink } from '../upstream/upstream.js';

/**
 * Takes the messages of one call: the first response goes to `answered`, what comes before it to `before`, and nothing is
 * taken after it.
 */
export function answerSink(
  before: MessageSink,
  { answered, failed }: { answered(answer: RpcMessage): void; failed(error: RpcError): void },
): MessageSink {
  let isClosed = false;
  return {
    get isClosed() {
      return isClosed;
    },
    push(message, reached) {
      if (message.kind !== 'response') return before.push(message, reached);
      isClosed = true;
      answered(message);
    },
    fail: failed,
  };
}
