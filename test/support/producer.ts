import assert from 'node:assert/strict';
import { MEDIA_TYPES, type Published, publishedOf, publishRequest } from './gapless-client.js';
import type { HttpRequest, HttpResponse } from './http.js';

/** A publish of a producer (contract 3.4). */
export interface ProducerPublish {
  stream: string;
  id: string;
  epoch: number;
  seq: number;
  lines: readonly string[];
}

export function producerRequest({ stream, id, epoch, seq, lines }: ProducerPublish): HttpRequest {
  return publishRequest(stream, lines.join('\n'), MEDIA_TYPES.ndjson, {
    'Producer-Id': id,
    'Producer-Epoch': String(epoch),
    'Producer-Seq': String(seq),
  });
}

export function keyRequest(stream: string, key: string, body: string): HttpRequest {
  return publishRequest(stream, body, MEDIA_TYPES.text, { 'Idempotency-Key': key });
}

/** What the answer to a publish says: where the events stand, and whether they stood there before. */
export interface Answered extends Published {
  isDuplicate: boolean;
}

/** Fails unless the publish was answered as contract 3.3 and 3.4 have it. */
export function answeredOf(response: HttpResponse): Answered {
  const published = publishedOf(response);
  const duplicate = response.header('gapless-duplicate');
  assert.ok(duplicate === undefined || duplicate === 'true', `Gapless-Duplicate: ${duplicate}`);
  return { ...published, isDuplicate: duplicate === 'true' };
}
