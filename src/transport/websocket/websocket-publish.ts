/**
 * A publish that comes as a message on a WebSocket (contract 5.5): to the stream that the WebSocket follows, by the rules
 * of a request, and with its answers.
 */

import type { EdgeStream } from '../../broker/edge-stream.js';
import { formatCursor } from '../../core/cursor.js';
import { RequestError } from '../../errors.js';
import type { ProducerClaim } from '../../ring/claim-judge.js';
import type { LiveMessage, MessageFormat } from '../../wire/live-message.js';
import { decodePublish } from '../../wire/publish-body.js';
import type { Caller } from '../admission/limits.js';
import type { EdgeServices } from '../edge-services.js';
import { tryAppend } from '../publish/append-publish.js';
import { claimOf } from '../publish/producer-claim.js';
import type { Placed, Publishing } from '../publish/publishing.js';
import { publishReplicated } from '../publish/replicated-publish.js';

/** What the events of a message are to who reads them. */
const BATCH_TYPES: Readonly<Record<MessageFormat, string>> = {
  json: 'application/vnd.gapless.batch+json',
  msgpack: 'application/msgpack',
};

export interface PublishMessageOptions {
  readonly name: string;
  readonly caller: Caller;
  readonly format: MessageFormat;
  readonly members: ReadonlyMap<string, unknown>;
  /** Called once, with the answer or with what is wrong, unless the publish is abandoned. */
  readonly answered: (answer: LiveMessage | RequestError) => void;
}

export class PublishMessage implements Publishing {
  readonly edge: EdgeServices;
  readonly caller: Caller;
  readonly name: string;
  readonly ifHead: string;
  readonly claim: ProducerClaim | null;
  readonly #format: MessageFormat;
  readonly #events: Uint8Array;
  readonly #answered: PublishMessageOptions['answered'];
  #gone: (() => void) | null = null;

  /** @throws {RequestError} `invalid_body`, `malformed` or `invalid_producer` */
  constructor(edge: EdgeServices, { name, caller, format, members, answered }: PublishMessageOptions) {
    const events = members.get('events');
    if (!(events instanceof Uint8Array)) {
      throw new RequestError('invalid_body', 'events: expected an array of events');
    }
    this.edge = edge;
    this.caller = caller;
    this.name = name;
    this.#format = format;
    this.#events = events;
    this.#answered = answered;
    this.ifHead = readIfHead(members.get('ifHead'));
    this.claim = readClaim(members);
  }

  get bodyBytes(): number {
    return this.#events.length;
  }

  /** @param stream null: there is none any more. @throws {RequestError} */
  append(stream: EdgeStream | null): void {
    const { access, limits, batch } = this.edge;
    access.require(this.caller.principal, 'publish', this.name);
    this.decode();
    limits.admitPublish(this.caller, batch.count, this.bodyBytes);
    if (this.edge.sharesLog && stream !== null) {
      return void publishReplicated(this, { creates: false });
    }
    if (stream === null || !tryAppend(this, stream)) throw new RequestError('stream_not_found');
  }

  decode(): void {
    const { config, batch } = this.edge;
    decodePublish(BATCH_TYPES[this.#format], this.#events, null, config, batch);
  }

  published(epoch: string, { first, last, isDuplicate }: Placed): void {
    const duplicate = isDuplicate ? { duplicate: true } : {};
    const cursor = formatCursor(epoch, last);
    this.#answered({ kind: 'published', cursor, epoch, first, last, ...duplicate });
  }

  fail(error: unknown): void {
    if (!(error instanceof RequestError)) throw error;
    this.#answered(error);
  }

  onGone(gone: () => void): void {
    this.#gone = gone;
  }

  /** Nobody is there to be answered any more. */
  abandon(): void {
    this.#gone?.();
  }
}

function readIfHead(value: unknown): string {
  if (value === undefined) return '';
  if (typeof value === 'string' && value !== '') return value;
  throw new RequestError('malformed', 'ifHead: expected a cursor');
}

/** As headers say it: an id and a key are text, an epoch and a seq are numbers. */
function readClaim(members: ReadonlyMap<string, unknown>): ProducerClaim | null {
  return claimOf({
    id: textOf(members, 'producerId', 'string'),
    epoch: textOf(members, 'producerEpoch', 'number'),
    seq: textOf(members, 'producerSeq', 'number'),
    key: textOf(members, 'idempotencyKey', 'string'),
  });
}

function textOf(members: ReadonlyMap<string, unknown>, name: string, type: 'string' | 'number'): string {
  const value = members.get(name);
  if (value === undefined) return '';
  const isRight = type === 'string' ? typeof value === 'string' && value !== '' : typeof value === 'number';
  if (!isRight) throw new RequestError('invalid_producer', `${name}: expected a ${type}`);
  return String(value);
}
