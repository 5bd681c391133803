/** A bug as it might be made: a change of one or a few lines of the built broker. */
export interface PlantedBug {
  readonly name: string;
  readonly changes: readonly { readonly file: string; readonly from: string; readonly to: string }[];
}

/**
 * What the simulator must be able to find. Most of them break one invariant in the least visible way that could be
 * thought of: they happen seldom, or only beside another thread.
 */
export const PLANTED_BUGS: readonly PlantedBug[] = [
  {
    name: 'a reader that was stalled skips one event',
    changes: [
      {
        file: 'broker/edge-broker.js',
        from: 'subscription.delivered = subscription.cursor;',
        to: 'if (subscription.cursor < subscription.stream.drainedSeq) subscription.cursor++;',
      },
    ],
  },
  {
    name: 'the last event of a run is sent again when the socket has not taken it',
    changes: [
      {
        file: 'broker/fan-out.js',
        from: 'this.#counters.add(Counter.stalls, 1);',
        to: 'subscription.cursor--;',
      },
    ],
  },
  {
    name: 'the epoch of a stream is made of its name, so a restart and a deletion give its ids again',
    changes: [{ file: 'core/epoch.js', from: 'random[i] & 31', to: 'i' }],
  },
  {
    name: 'a restart forgets the newest event of a stream',
    changes: [
      {
        file: 'ring/lifecycle.js',
        from: 'stream.logged?.head ?? 0',
        to: 'Math.max((stream.logged?.floor ?? 1) - 1, (stream.logged?.head ?? 0) - 1)',
      },
    ],
  },
  {
    name: 'a publish is answered before its commit',
    changes: [
      {
        file: 'transport/publish/append-publish.js',
        from: 'if (broker.isDurable)\n        answerWhenCommitted',
        to: 'if (false)\n        answerWhenCommitted',
      },
    ],
  },
  {
    name: 'a run that is read goes beyond what is committed',
    changes: [
      {
        file: 'ring/read.js',
        from: 'uncommittedSeq ?? this.committedSeq',
        to: 'uncommittedSeq ?? this.headSeq',
      },
      { file: 'broker/fan-out.js', from: 'assert(this.#found !== READ_CAUGHT_UP', to: 'assert(true' },
    ],
  },
  {
    name: 'the log is read beyond what was announced as committed',
    changes: [
      {
        file: 'server/replay/replay-question.js',
        from: 'committed, bytesMax',
        to: 'committed: Number.MAX_SAFE_INTEGER, bytesMax',
      },
    ],
  },
  {
    name: 'events are evicted that wait for their commit',
    changes: [
      { file: 'ring/ring-growth.js', from: 'target > committedSeq(rings, slot) + 1', to: 'false' },
      { file: 'ring/ring-memory.js', from: 'seq <= committedSeq(rings, slot) + 1', to: 'true' },
    ],
  },
  {
    name: 'who resumes below the floor is taken to the floor and told nothing',
    changes: [
      {
        file: 'transport/subscribe/resume-request.js',
        from: "if (classified.outcome === 'refused') {",
        to: "if (classified.outcome === 'refused' && classified.reason === 'evicted') return lowestReadable(at) - 1;\n    if (classified.outcome === 'refused') {",
      },
    ],
  },
  {
    name: 'a cursor of another epoch is taken for one of this',
    changes: [
      {
        file: 'core/resume.js',
        from: 'return EPOCH_CHANGED;',
        to: 'return cursor.seq <= at.committed ? LIVE : EPOCH_CHANGED;',
      },
    ],
  },
  {
    name: 'a reader does not ask whether its copy was overwritten meanwhile',
    changes: [{ file: 'ring/read.js', from: 'if (this.#unmoved(stream.slot))', to: 'if (true)' }],
  },
  {
    name: 'an edge clears its mark without looking for more',
    changes: [
      { file: 'ring/read.js', from: 'if (!hasMore)', to: 'if (true)' },
      { file: 'ring/read.js', from: 'return !hasMore', to: 'return true' },
    ],
  },
  {
    name: 'a publish that is sent again is appended again',
    changes: [
      {
        file: 'core/producer.js',
        from: 'return asked.seq > newest.seq - PRODUCER_WINDOW ?',
        to: 'return asked.seq === newest.seq ? PUBLISH_NEXT : asked.seq > newest.seq - PRODUCER_WINDOW ?',
      },
    ],
  },
];
