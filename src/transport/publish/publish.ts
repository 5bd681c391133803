/**
 * POST /v1/streams/{stream} (contract 3).
 *
 * Hot path: a body in one piece to a stream that this edge knows is decoded, framed, appended and answered
 * within the request's own handler.
 */

import { isUtf8 } from 'node:buffer';
import { formatCursor } from '../../core/cursor.js';
import { isStreamName } from '../../core/stream-name.js';
import { RequestError } from '../../errors.js';
import type { ProducerClaim } from '../../ring/claim-judge.js';
import { decodePublish } from '../../wire/publish-body.js';
import type { EdgeServices } from '../edge-services.js';
import type { Exchange } from '../http/exchange.js';
import type { RequestView } from '../http/request-view.js';
import { tryAppend } from './append-publish.js';
import { headMismatch } from './append-refusal.js';
import { readClaim } from './producer-claim.js';
import type { Placed, Publishing } from './publishing.js';
import { publishReplicated } from './replicated-publish.js';

/** Refused as an event type. */
const NOT_UTF8 = '\0';

/** How often a stream may be deleted under a publish before that is an error. */
const TRIES_MAX = 3;

const NO_BODY = new Uint8Array(0);

/** @throws {RequestError} what is wrong before the body has come; the connection is of no use then. */
export function publish(exchange: Exchange, name: string, req: RequestView): void {
  const { edge } = exchange;
  refuseUnread(edge, req);
  const publishing = new PublishRequest(exchange, name, req);
  exchange.watch();
  exchange.readBody(edge.config.bodyBytesMax, (body) => {
    try {
      if (body === null) throw bodyTooLarge(edge);
      receive(exchange, publishing, body);
    } catch (error) {
      // The rest of a body that is too large is not waited for.
      exchange.fail(error, { close: body === null });
    }
  });
}

/** A body that is announced as too large is refused before it has come. */
function refuseUnread(edge: EdgeServices, req: RequestView): void {
  if (Number(req.getHeader('content-length')) > edge.config.bodyBytesMax) throw bodyTooLarge(edge);
}

/** A request with events. What is needed of its headers is read at once, for they are gone when the body comes. */
class PublishRequest implements Publishing {
  readonly name: string;
  readonly ifHead: string;
  readonly claim: ProducerClaim | null;
  readonly caller: Exchange;
  body: Uint8Array = NO_BODY;
  readonly #contentType: string;
  readonly #eventType: string | null;

  constructor(exchange: Exchange, name: string, req: RequestView) {
    this.caller = exchange;
    this.name = name;
    this.#contentType = req.getHeader('content-type');
    this.#eventType = readEventType(req.getHeader('gapless-event'));
    this.ifHead = req.getHeader('gapless-if-head');
    this.claim = readClaim(req);
  }

  get edge(): EdgeServices {
    return this.caller.edge;
  }

  get bodyBytes(): number {
    return this.body.length;
  }

  decode(): void {
    const { config, batch } = this.edge;
    decodePublish(this.#contentType, this.body, this.#eventType, config, batch);
  }

  published(epoch: string, { first, last, isDuplicate }: Placed): void {
    const cursor = formatCursor(epoch, last);
    this.caller.send(
      200,
      isDuplicate
        ? { 'Content-Type': 'application/json', 'Gapless-Cursor': cursor, 'Gapless-Duplicate': 'true' }
        : { 'Content-Type': 'application/json', 'Gapless-Cursor': cursor },
      `{"epoch":"${epoch}","first":${first},"last":${last}}`,
    );
  }

  fail(error: unknown): void {
    this.caller.fail(error);
  }

  onGone(gone: () => void): void {
    this.caller.onGone(gone);
  }
}

/** The library reads header bytes as Latin-1; they are UTF-8 (contract 3.2). What is not stays as it is and is refused. */
function readEventType(header: string): string | null {
  if (header === '') return null;
  if (/^[\x20-\x7e]*$/.test(header)) return header;
  const bytes = Buffer.from(header, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : NOT_UTF8;
}

function receive(exchange: Exchange, publishing: PublishRequest, body: Uint8Array): void {
  const { edge } = exchange;
  if (!isStreamName(publishing.name)) throw new RequestError('invalid_stream_name');
  publishing.body = body;
  publishing.decode();
  edge.limits.admitPublish(exchange, edge.batch.count, body.length);
  if (edge.sharesLog) {
    return void publishReplicated(publishing, { creates: publishing.ifHead === '' });
  }
  const stream = edge.broker.streams.known(publishing.name);
  if (stream !== null && tryAppend(publishing, stream)) return;
  // The library takes the body back when this returns.
  publishing.body = body.slice();
  void exchange.run(() => appendUnknown(exchange, publishing));
}

/** The first publish that this edge sees to a stream: the directory knows where it is, or makes it. */
async function appendUnknown(exchange: Exchange, publishing: PublishRequest): Promise<void> {
  const { edge } = exchange;
  const { name, ifHead } = publishing;
  for (let attempt = 0; attempt < TRIES_MAX; attempt++) {
    const stream = await edge.broker.streams.resolve(name, ifHead === '');
    if (exchange.done) return;
    if (stream === null) throw ifHead === '' ? new RequestError('stream_not_found') : headMismatch(null);
    publishing.decode();
    if (tryAppend(publishing, stream)) return;
  }
  throw new RequestError('stream_not_found', 'the stream is being deleted over and over');
}

function bodyTooLarge({ config }: EdgeServices): RequestError {
  return new RequestError('body_too_large', `expected at most ${config.bodyBytesMax} bytes`);
}
