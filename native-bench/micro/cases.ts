import { Packr } from 'msgpackr';
import { CatchUp } from '#gapless/broker/catch-up.js';
import { FanOut } from '#gapless/broker/fan-out.js';
import { type Sink, Subscription } from '#gapless/broker/subscription.js';
import { classifyResume } from '#gapless/core/resume.js';
import { FrameBatch } from '#gapless/core/sse-frame.js';
import { Counters, createCounters } from '#gapless/ring/counters.js';
import { FrameRun } from '#gapless/ring/read.js';
import { decodePublish } from '#gapless/wire/publish-body.js';
import { batchOf, EVENT_BYTES, LIMITS, linesBody, Stage, textBody } from './stage.js';

/** A piece of the hot path. */
export interface Case {
  readonly name: string;
  /** How many of these one call does. */
  readonly unit: string;
  readonly perCall: number;
  readonly call: () => void;
}

const BATCH_EVENTS = 100;
const RUN_BYTES = 64 * 1024;
const SUBSCRIBERS = 500;

export function microCases(): Case[] {
  return [
    append(1),
    append(BATCH_EVENTS),
    frameText(),
    frameBatch('application/x-ndjson', linesBody(BATCH_EVENTS)),
    frameBatch('application/msgpack', msgpackBody()),
    copyOut(),
    classify(),
    fanOut(),
  ];
}

function append(events: number): Case {
  const stage = new Stage();
  const batch = batchOf(events);
  return { name: `append-${events}`, unit: 'events', perCall: events, call: () => stage.append(batch) };
}

function frameText(): Case {
  const body = textBody();
  const out = new FrameBatch(RUN_BYTES);
  const call = () => decodePublish('text/plain', body, null, LIMITS, out);
  return { name: 'frame-text', unit: 'events', perCall: 1, call };
}

function frameBatch(contentType: string, body: Uint8Array): Case {
  const out = new FrameBatch(RUN_BYTES);
  const name = `frame-${contentType.replace(/.*[/-]/, '')}`;
  const call = () => decodePublish(contentType, body, null, LIMITS, out);
  return { name, unit: 'events', perCall: BATCH_EVENTS, call };
}

function msgpackBody(): Uint8Array {
  const data = 'x'.repeat(EVENT_BYTES);
  return new Packr({ useRecords: false }).pack(Array.from({ length: BATCH_EVENTS }, () => ({ data })));
}

function copyOut(): Case {
  const stage = new Stage();
  const batch = batchOf(BATCH_EVENTS);
  while (stage.headSeq < 2000) stage.append(batch);
  const run = new FrameRun(RUN_BYTES);
  const call = () => void stage.reader.read(stage.stream, 0, RUN_BYTES, run);
  return { name: 'copy-out', unit: 'bytes', perCall: RUN_BYTES, call };
}

function classify(): Case {
  const at = { epoch: 'k3v9x0q2ab', floor: 10, logFloor: 1, committed: 1000 };
  const cursor = { epoch: 'k3v9x0q2ab', seq: 500 };
  return { name: 'classify', unit: 'resumes', perCall: 1, call: () => void classifyResume(cursor, at) };
}

/** All of the edge's work on a delivery but for the socket's. */
function fanOut(): Case {
  const stage = new Stage();
  const { stream, reader } = stage;
  const batch = batchOf(1);
  const taken: Sink = {
    beats: 'quiet',
    write: () => true,
    beat: () => true,
    end: () => undefined,
    cut: () => undefined,
  };
  const unexpected = () => {
    throw new Error('a subscription of a micro case has ended');
  };
  const counters = new Counters(createCounters(1), 0);
  const loop = new FanOut({
    reader,
    counters,
    catchUp: new CatchUp(counters, () => 0),
    events: { overtaken: unexpected, ended: unexpected, gone: unexpected },
    writeBytesMax: RUN_BYTES,
    replay: null,
  });
  for (let i = 0; i < SUBSCRIBERS; i++) {
    stream.add(new Subscription({ stream, sink: taken, cursor: 0, rendering: null, tellUnavailable: false }));
  }
  const call = () => {
    stage.append(batch);
    do loop.beginTurn(0);
    while (!loop.drain(stream));
    loop.endTurn();
  };
  return { name: 'fan-out-loop', unit: 'deliveries', perCall: SUBSCRIBERS, call };
}
