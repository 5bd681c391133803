import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EdgeStream } from '#gapless/broker/edge-stream.js';
import { PageReader } from '#gapless/broker/page-reader.js';
import { READ_OK } from '#gapless/ring/read.js';
import { RingStage, texts } from './ring-stage.js';
import { configOf } from './storage-stage.js';

describe('events for pages', () => {
  it('stay as they are while another page is read, at the same moment (I1)', async () => {
    const stage = new RingStage(1 << 20);
    const stream = new EdgeStream({ ...stage.open(), name: 'pages', config: configOf() });
    stage.append(stream, ...texts('event ', 100, 50));
    const pages = new PageReader({ reader: stage.reader, replay: null, bytesMax: 1 << 20 });
    const reads = await Promise.all([0, 31, 90].map((afterSeq) => pages.read(stream, afterSeq)));
    for (const [index, afterSeq] of [0, 31, 90].entries()) {
      const { found, events } = reads[index] ?? assert.fail();
      assert.equal(found, READ_OK);
      assert.deepEqual(
        events.map(({ data }) => Buffer.from(data).toString()),
        texts('event ', 100, 50).slice(afterSeq),
      );
    }
  });
});
