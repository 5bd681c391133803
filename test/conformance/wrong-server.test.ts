import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Result, runSuite } from '#gapless/conformance/suite.js';
import { useBroker } from '../support/broker-process.js';
import { type Fault, type WrongRequest, WrongServer } from './wrong-server.js';

const wantsEvents = ({ headers }: WrongRequest) => headers.accept === 'text/event-stream';
const changeJson = (text: string, change: (value: Record<string, unknown>) => void): string => {
  const value = JSON.parse(text) as Record<string, unknown>;
  change(value);
  return JSON.stringify(value);
};
const isPage = ({ headers, method, url }: WrongRequest) =>
  method === 'GET' && headers.accept === 'application/json' && !url.pathname.includes('metrics');

/** Each fault, and the sections that must find it. */
const FAULTS: [name: string, sections: string[], fault: Fault][] = [
  ['drops an event', ['1', '4.3', '4.4'], { event: (frame, index) => (index === 2 ? [] : [frame]) }],
  [
    'sends an event twice',
    ['1', '4.3', '4.4'],
    { event: (frame, index) => (index === 2 ? [frame, frame] : [frame]) },
  ],
  [
    'changes an id',
    ['1', '4.3', '4.4'],
    { event: (frame) => [frame.replace(/^(id: \w+\.)3$/m, (_id, start) => `${start}4`)] },
  ],
  [
    'changes a content for some readers',
    ['4.4'],
    { event: (frame, index) => [index === 5 ? frame.replace(/publisher-1/, 'publisher-2') : frame] },
  ],
  [
    'accepts what must be refused, and goes on from the earliest',
    ['4.4', '10'],
    {
      request: (asked) => {
        const cursor = asked.headers['last-event-id'];
        if (wantsEvents(asked) && /\.(1|2|4|5|9\d*)$/.test(String(cursor)))
          asked.headers['last-event-id'] = 'earliest';
      },
    },
  ],
  [
    'answers 200 where a refusal is due',
    ['3.1', '3.5', '4.4', '8'],
    {
      answer: (answer) => {
        if (answer.status >= 400) answer.status = 200;
      },
    },
  ],
  [
    'gives refusals another code',
    ['4.1', '8'],
    { body: (text) => text.replaceAll('"malformed"', '"invalid_query"').replaceAll('"not_found"', '"gone"') },
  ],
  ['leaves the priming frame out', ['4.2'], { frame: (frame) => (/^id:/.test(frame) ? [] : [frame]) }],
  ['lets its refusals be cached', ['8', '4.4'], { answer: ({ headers }) => delete headers['cache-control'] }],
  [
    'loses the last line of a batch',
    ['3.1', '3.3'],
    {
      request: (asked) => {
        if (asked.headers['content-type'] !== 'application/x-ndjson') return;
        const lines = asked.body.toString('latin1').split('\n');
        asked.body = Buffer.from(lines.slice(0, -1).join('\n') || lines.join('\n'), 'latin1');
      },
    },
  ],
  [
    'forgets the types of events',
    ['3.2'],
    {
      request: ({ headers }) => delete headers['gapless-event'],
    },
  ],
  ['appends whatever the head is', ['3.5'], { request: ({ headers }) => delete headers['gapless-if-head'] }],
  [
    'prefers the query to the header',
    ['4.1'],
    {
      request: (asked) => {
        if (asked.url.searchParams.has('cursor')) delete asked.headers['last-event-id'];
      },
    },
  ],
  [
    'does not end a closed stream',
    ['4.7'],
    { event: (frame) => (/stream_closed/.test(frame) ? [] : [frame]) },
  ],
  ['cuts where it should end', ['4.5', '4.7'], { ending: { end: 'cut' } }],
  ['ends where it should cut', ['4.6'], { ending: { cut: 'end' } }],
  ['gives everybody all types', ['4.9'], { request: ({ url }) => url.searchParams.delete('types') }],
  [
    'says that every page is the last',
    ['6'],
    {
      body: (text, asked, { status }) =>
        isPage(asked) && status === 200
          ? changeJson(text, (page) => Object.assign(page, { upToDate: true }))
          : text,
    },
  ],
  [
    'does not delete',
    ['1', '2.3', '4.7'],
    {
      request: (asked) => {
        if (asked.method === 'DELETE') asked.method = 'HEAD';
      },
      answer: (answer, { method }) => {
        if (method === 'HEAD') answer.status = 204;
      },
    },
  ],
  ['lists without end', ['2.2'], { request: ({ url }) => url.searchParams.delete('limit') }],
  [
    'appends repeats again',
    ['3.4'],
    {
      request: ({ headers }) => {
        for (const name of ['producer-id', 'producer-epoch', 'producer-seq', 'idempotency-key'])
          delete headers[name];
      },
    },
  ],
  [
    'does not say what is a repeat',
    ['3.4'],
    { answer: ({ headers }) => delete headers['gapless-duplicate'] },
  ],
  [
    'does not wait for named subscribers',
    ['3.6'],
    {
      request: (asked) => {
        asked.body = Buffer.from(asked.body.toString('latin1').replace('"reject"', '"evict"'), 'latin1');
      },
    },
  ],
  [
    'knows no named subscribers',
    ['4.8', '7'],
    { request: ({ url }) => url.searchParams.delete('subscriber') },
  ],
  [
    'moves acknowledgements back',
    ['7'],
    { body: (text) => text.replace(/^(\{"subscriber":"a","acked":"\w+\.)4"/, (_all, start) => `${start}2"`) },
  ],
  [
    'gives the events of one stream the name of another',
    ['4.10'],
    {
      event: (frame, index) => [index === 3 ? frame.replace(/"stream":"[^"]+"/, '"stream":"other"') : frame],
    },
  ],
  [
    'drops an event of one of several streams',
    ['4.10'],
    { event: (frame, index) => (index === 1 ? [] : [frame]) },
  ],
  [
    'goes on by prefix from the id before',
    ['4.11'],
    {
      request: ({ headers }) => {
        const [, token, count] = /^(p[a-z0-9]{20}\.)(\d+)$/.exec(String(headers['last-event-id'])) ?? [];
        if (token !== undefined) headers['last-event-id'] = `${token}${Number(count) - 1}`;
      },
    },
  ],
  ['skips an event on a WebSocket', ['5.2'], { socket: (text) => text.replace(/(\.)4(","type")/, '$15$2') }],
  ['gives WebSockets another reason', ['5.3'], { socket: (text) => text.replace('"evicted"', '"expired"') }],
  ['pings with another cursor', ['5.4'], { socket: (text) => text.replace(/^(\x89.[a-z0-9]+\.)3$/s, '$12') }],
  ['says where no publish stands', ['5.5'], { socket: (text) => text.replace('"last":2', '"last":3') }],
  ['takes any page for its own', ['9.3'], { request: ({ headers }) => delete headers.origin }],
  [
    'lets every page read',
    ['9.3'],
    {
      answer: ({ headers }) => {
        headers['access-control-allow-origin'] = '*';
      },
    },
  ],
  [
    'counts no refusals',
    ['10'],
    { body: (text) => text.replace(/^(gapless_resume_unavailable_total.*) .*$/gm, '$1 0') },
  ],
];

describe('the conformance suite', { concurrency: 4 }, () => {
  const broker = useBroker('--heartbeat-interval-ms', '1s');

  async function judge(fault: Fault, only?: string[]): Promise<Result[]> {
    const server = await WrongServer.start(broker.port, fault);
    try {
      return await runSuite({ url: server.url, only });
    } finally {
      await server.stop();
    }
  }

  it('passes a server behind a relay that changes nothing', async () => {
    const results = await judge({});
    assert.deepEqual(
      results.filter(({ outcome }) => outcome === 'failed'),
      [],
    );
  });

  for (const [name, sections, fault] of FAULTS) {
    it(`fails a server that ${name}, in ${sections.join(' and ')}`, async () => {
      const results = await judge(fault, sections);
      for (const section of sections) {
        const failed = results.filter((result) => result.section === section && result.outcome === 'failed');
        assert.ok(failed.length > 0, `${section} found nothing wrong`);
        for (const { reason } of failed) assert.ok(reason !== null && reason !== '');
      }
    });
  }
});
