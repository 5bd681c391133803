import { define } from './definition.js';
import { list, size, time, wholeNumber } from './kinds.js';
import { isAddressRange } from './text-forms.js';
import { GIB } from './units.js';

const COUNT_MAX = 1_000_000;

/** What is too much of somebody, or of all (contract 9.3). */
export const LIMIT_DEFINITIONS = {
  subscribersMax: define({
    group: 'Limits',
    kind: wholeNumber({ min: 0, max: COUNT_MAX, unit: 'subscribers' }),
    default: 0,
    doc: 'Subscriptions open at a time. 0 sets no such limit.',
  }),
  streamSubscribersMax: define({
    group: 'Limits',
    kind: wholeNumber({ min: 0, max: COUNT_MAX, unit: 'subscribers' }),
    default: 0,
    doc: 'Subscriptions of one stream, and requests that wait for an event or a commit of it. 0 sets no such limit.',
  }),
  addressSubscribersMax: define({
    group: 'Limits',
    kind: wholeNumber({ min: 0, max: COUNT_MAX, unit: 'subscribers' }),
    default: 0,
    doc: 'Subscriptions of one client address, an IPv6 network of 64 bits counting as one. 0 sets no such limit.',
  }),
  addressReplayBytesMax: define({
    group: 'Limits',
    kind: size({ min: 0, max: 4 * GIB }),
    default: 0,
    doc: 'Bytes in a minute, by estimate, that clients of one address are behind when they resume. 0 sets no such limit.',
  }),
  trustedProxies: define({
    group: 'Limits',
    kind: list({
      placeholder: 'ADDRESS',
      expected: 'an IP address, or a range such as 10.0.0.0/8',
      isValid: isAddressRange,
      itemsMax: 100,
    }),
    default: [],
    doc: 'Proxies whose `X-Forwarded-For` is believed. Without them the address of a client is that of its connection.',
  }),
  publishEventsRate: define({
    group: 'Limits',
    kind: wholeNumber({ min: 0, max: COUNT_MAX, unit: 'events' }),
    default: 0,
    doc: 'Events a second that one token subject, static key, or, without keys, address may publish. 0 sets no such limit.',
  }),
  publishBytesRate: define({
    group: 'Limits',
    kind: size({ min: 0, max: GIB }),
    default: 0,
    doc: 'The same in bytes of request bodies a second. 0 sets no such limit.',
  }),
  shedReplaysMs: define({
    group: 'Limits',
    kind: time({ min: 0, max: 60_000 }),
    default: 250,
    doc: 'Delay of the event loop from which on resumes that need a replay are refused. 0 never refuses them.',
  }),
  shedSubscriptionsMs: define({
    group: 'Limits',
    kind: time({ min: 0, max: 60_000 }),
    default: 1000,
    doc: 'Delay of the event loop from which on all new subscriptions are refused. 0 never refuses them.',
  }),
};
