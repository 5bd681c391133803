import { define } from './definition.js';
import { list, onOff, text, wholeNumber } from './kinds.js';
import { isCorsOrigin, isHost } from './text-forms.js';

/** Where it listens, and who may call it from a browser. */
export const NETWORK_DEFINITIONS = {
  port: define({
    group: 'Network',
    kind: wholeNumber({ min: 0, max: 65_535 }),
    default: 8080,
    doc: 'TCP port to listen on. 0 takes any that is free.',
  }),
  host: define({
    group: 'Network',
    kind: text({ placeholder: 'HOST', expected: 'an IP address or a host name', isValid: isHost }),
    default: '127.0.0.1',
    doc: 'Address to listen on. Any but a loopback address needs keys, or `insecure`.',
  }),
  insecure: define({
    group: 'Network',
    kind: onOff(),
    default: false,
    doc: 'Allow an address that others can reach although nobody has to authenticate.',
  }),
  corsOrigins: define({
    group: 'Network',
    kind: list({
      placeholder: 'ORIGIN',
      expected: 'an origin as browsers send it (https://app.example), or *',
      isValid: isCorsOrigin,
      itemsMax: 1000,
    }),
    default: [],
    doc: 'Origins whose pages may use the API from a browser. `*` allows all.',
  }),
  hostNames: define({
    group: 'Network',
    kind: list({ placeholder: 'NAME', expected: 'a host name', isValid: isHost, itemsMax: 1000 }),
    default: [],
    doc: 'Names with a dot that a broker without keys may be called by, such as that of a proxy before it.',
  }),
  connectionsMax: define({
    group: 'Network',
    kind: wholeNumber({ min: 0, max: 1_000_000, unit: 'connections' }),
    default: 0,
    doc: 'Connections in use at a time: event streams, WebSockets and requests under way. 0 takes what the descriptor limit of the process allows.',
  }),
};
