import { type Check, range } from './check.js';
import type { EventStream } from './event-stream.js';
import { expect, expectCursor, expectEqual, expectProblem } from './expect.js';
import { GapRules } from './gap-rules.js';
import { positionsOf, type Target } from './target.js';

const READERS = 12;
const PUBLISHERS = 3;
const PUBLISHES_EACH = 60;
const BATCH_EVENTS = 4;
const CUT_BYTES_MAX = 12_000;
const ATTEMPTS_MAX = 2000;

const KIB = 1024;
const FLOOD_EVENT_BYTES = 32 * KIB;
const FLOOD_BATCHES = 80;
const FLOOD_BATCH_EVENTS = 8;

/** A reader that breaks again and again, and comes back with the last id it was given. */
class BreakingReader {
  #connections = 0;
  #id = '';

  constructor(
    readonly target: Target,
    readonly stream: string,
    readonly name: string,
    readonly rules: GapRules,
  ) {}

  get seq(): number {
    return this.#id === '' ? 0 : expectCursor(this.#id, 'an id').seq;
  }

  /** One connection, until it has the event `seq`, breaks by itself or is ended. */
  async connect(seq: () => number, cutAfterBytes?: number): Promise<void> {
    const { rules, stream, name: reader } = this;
    const connection = `${reader}#${++this.#connections}`;
    const from = this.#id;
    rules.observe({ kind: 'asked', by: connection, stream });
    let isConnected = false;
    const connected = (subscription: EventStream, id: string) => {
      if (isConnected) return;
      isConnected = true;
      const { epoch, ...positions } = positionsOf((name) => subscription.header(name), 'a subscription');
      const after = expectCursor(id, 'the position of a subscription').seq;
      const joined = from === '';
      rules.observe({ kind: 'connected', connection, reader, stream, epoch, after, joined, ...positions });
    };
    const subscription = await this.target.subscribe(stream, {
      ...(from === '' ? { query: 'cursor=earliest' } : { lastEventId: from }),
      ...(cutAfterBytes === undefined ? {} : { cutAfterBytes }),
      onEvent: ({ id, data: content = '' }, self) => {
        connected(self, from === '' ? (self.frames.find((frame) => frame.id !== undefined)?.id ?? '') : from);
        const position = expectCursor(id, 'the id of an event');
        rules.observe({ kind: 'event', connection, ...position, content });
      },
    });
    const has = () => subscription.lastId !== '' && expectCursor(subscription.lastId, 'an id').seq >= seq();
    await subscription.until('the last event', () => subscription.ending !== undefined || has());
    subscription.close();
    if (from !== '' || subscription.lastId !== '') connected(subscription, from || subscription.lastId);
    this.#id = subscription.lastId || from;
    if (this.seq >= seq()) rules.observe({ kind: 'caught-up', connection });
  }
}

/** Publishes batches one after the other, telling the rules; resolves with the newest seq it was given. */
async function publishAll(target: Target, stream: string, name: string, rules: GapRules): Promise<number> {
  let head = 0;
  for (const number of range(1, PUBLISHES_EACH)) {
    const publish = `${name}/${number}`;
    const contents = range(1, BATCH_EVENTS).map((index) => `${publish}/${index} `.padEnd(100, '.'));
    rules.observe({ kind: 'publish-begun', publish, stream, contents });
    const published = await target.publishLines(stream, contents);
    rules.observe({ kind: 'publish-acked', publish, ...published });
    head = published.last;
  }
  return head;
}

async function breakAndResume(target: Target): Promise<void> {
  const rules = new GapRules();
  const { name: stream } = await target.createStream({}, 'promise');
  let head = Number.POSITIVE_INFINITY;
  const publishing = Promise.all(
    range(1, PUBLISHERS).map((index) => publishAll(target, stream, `publisher-${index}`, rules)),
  ).then((heads) => {
    head = Math.max(...heads);
  });
  const reading = range(1, READERS).map(async (index) => {
    const reader = new BreakingReader(target, stream, `reader-${index}`, rules);
    // Every reader breaks at other bytes: within the head, in the middle of a frame, many frames on.
    for (let attempt = 1; reader.seq < head; attempt++) {
      expect(attempt <= ATTEMPTS_MAX, `${reader.name} does not get to the head`);
      const bytes =
        head === Number.POSITIVE_INFINITY ? 1 + ((attempt * index * 7919) % CUT_BYTES_MAX) : undefined;
      await reader.connect(() => head, bytes);
    }
  });
  await Promise.all([publishing, ...reading]);
  expect(rules.resumeCount >= READERS, `only ${rules.resumeCount} resumes: too few to show anything`);
  expect(rules.violationCount === 0, rules.describeViolations());
}

/** A reader that stalls while far more is published than the stream keeps. */
async function overtake(target: Target): Promise<void> {
  const { name } = await target.createStream({ retention: { bytes: 512 * KIB } }, 'overtaken');
  const subscription = await target.subscribe(name);
  await subscription.untilPrimed();
  subscription.stall();
  for (const batch of range(1, FLOOD_BATCHES)) {
    const lines = range(1, FLOOD_BATCH_EVENTS).map((line) =>
      `${batch}/${line} `.padEnd(FLOOD_EVENT_BYTES, '.'),
    );
    await target.publishLines(name, lines);
  }
  subscription.unstall();
  const head = FLOOD_BATCHES * FLOOD_BATCH_EVENTS;
  const isOver = () => subscription.ending !== undefined || subscription.seqs.at(-1) === head;
  await subscription.until('the end or the last event', isOver);
  expectEqual(subscription.seqs, range(1, subscription.seqs.length), 'the seqs until then');
  if (subscription.seqs.at(-1) === head) return subscription.close();

  expectEqual(subscription.ending, 'cut', 'how one that was overtaken is ended');
  const back = await target.ask(name, { lastEventId: subscription.lastId });
  if (back.status === 200) {
    // The log has it still, or the server had another reason to cut: then what follows must be the next event.
    await back.untilEvents(1);
    back.close();
    expectEqual(
      back.seqs[0],
      expectCursor(subscription.lastId, 'an id').seq + 1,
      'the first seq after coming back',
    );
    return;
  }
  const { reason } = expectProblem(await back.refusal(), 410, 'resume_unavailable', 'coming back');
  expectEqual(reason, 'evicted', 'the reason');
}

export const promiseChecks: Check[] = [
  {
    section: '4.6',
    what: 'a reader that eviction overtakes is never skipped forward: it gets the next event, or is cut without an end',
    run: overtake,
  },
  {
    section: '4.4',
    what: 'readers that break at any byte while others publish have every event once, in one order (rules G1 to G7)',
    run: breakAndResume,
  },
];
