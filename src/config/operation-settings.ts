import { define } from './definition.js';
import { choice, list, onOff, path, time, wholeNumber } from './kinds.js';
import { isStreamPattern } from './text-forms.js';
import { MINUTE_MS, SECOND_MS } from './units.js';

/** What operators see, and how they end it (contract 10, 11). */
export const OPERATION_DEFINITIONS = {
  config: define({
    group: 'Operations',
    kind: path('FILE'),
    default: null,
    doc: 'JSON file with settings, its keys named as here. The only setting that cannot stand in the file itself.',
  }),
  drainMs: define({
    group: 'Operations',
    kind: time({ min: 0, max: 10 * MINUTE_MS }),
    default: 5 * SECOND_MS,
    doc: 'Time over which subscribers are sent away when the broker is told to end.',
  }),
  console: define({
    group: 'Operations',
    kind: onOff(),
    default: true,
    doc: 'Serve the console for operators at `/console`. What it shows needs the right `admin`.',
  }),
  metricsStreams: define({
    group: 'Operations',
    kind: list({
      placeholder: 'STREAM',
      expected: 'a stream name, or the beginning of one and *',
      isValid: isStreamPattern,
      itemsMax: 1000,
    }),
    default: [],
    doc: 'Streams with metrics of their own. A final `*` takes all that begin so.',
  }),
  metricsStreamsTop: define({
    group: 'Operations',
    kind: wholeNumber({ min: 0, max: 1000, unit: 'streams' }),
    default: 10,
    doc: 'Streams with metrics of their own because their lag is largest. 0 for none.',
  }),
  logLevel: define({
    group: 'Operations',
    kind: choice(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
    default: 'info',
    doc: 'Least important lines that are logged.',
  }),
};
