import assert from 'node:assert/strict';
import { it } from 'node:test';
import { describeOnEdges } from '../support/broker-process.js';
import { cursorOf, range } from '../support/cursor.js';
import {
  assertProblem,
  createStream,
  freshStream,
  MEDIA_TYPES,
  publish,
  publishRequest,
  readAll,
  stateOf,
} from '../support/gapless-client.js';
import { type HttpResponse, request } from '../support/http.js';

describeOnEdges('3.5 Gapless-If-Head', [], (broker) => {
  function publishIf(stream: string, cursor: string, body = 'conditional'): Promise<HttpResponse> {
    return request(
      broker.port,
      publishRequest(stream, body, MEDIA_TYPES.text, { 'Gapless-If-Head': cursor }),
    );
  }

  it('3.5 appends where the head is as named, also before the first event', async () => {
    const stream = freshStream('if-head');
    await createStream(broker.port, stream);
    const { epoch } = await stateOf(broker.port, stream);
    for (const seq of range(0, 4)) {
      const response = await publishIf(stream, cursorOf(epoch, seq));
      assert.equal(response.status, 200, response.text);
    }
    assert.equal((await stateOf(broker.port, stream)).head, 5);
  });

  it('3.5 anywhere else it is 412 with the head, and nothing is appended', async () => {
    const stream = freshStream('mismatch');
    const { epoch } = await publish(broker.port, stream, 'a\nb\nc', MEDIA_TYPES.ndjson);
    for (const cursor of [
      cursorOf(epoch, 0),
      cursorOf(epoch, 2),
      cursorOf(epoch, 4),
      cursorOf('zzzzzzzzzz', 3),
    ]) {
      const response = await publishIf(stream, cursor);
      const problem = assertProblem(response, 412, 'head_mismatch');
      assert.equal(problem.head, cursorOf(epoch, 3));
      assert.equal(response.header('gapless-cursor'), cursorOf(epoch, 3));
    }
    assert.equal((await stateOf(broker.port, stream)).head, 3);
  });

  it('3.5 what is no cursor is 400 malformed', async () => {
    const stream = freshStream('malformed');
    const { epoch } = await publish(broker.port, stream, 'one');
    for (const text of ['nonsense', `${epoch}.01`, `${epoch}.`, '1']) {
      assertProblem(await publishIf(stream, text), 400, 'malformed');
    }
    assert.equal((await stateOf(broker.port, stream)).head, 1);
  });

  it('3.5 of twenty publishers that name the same head exactly one wins, in each of twenty rounds', async () => {
    const stream = freshStream('contended');
    const { epoch } = await publish(broker.port, stream, 'winner 0');
    for (const round of range(1, 20)) {
      const answers = await Promise.all(
        range(1, 20).map((rival) =>
          publishIf(stream, cursorOf(epoch, round), `round ${round} rival ${rival}`),
        ),
      );
      assert.equal(answers.filter(({ status }) => status === 200).length, 1, `round ${round}`);
      assert.equal(answers.filter(({ status }) => status === 412).length, 19, `round ${round}`);
    }
    const data = (await readAll(broker.port, stream)).map((event) => event.data);
    assert.equal(data.length, 21);
    for (const round of range(1, 20)) assert.match(data[round] ?? '', new RegExp(`^round ${round} rival`));
  });
});
