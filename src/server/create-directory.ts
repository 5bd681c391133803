/**
 * The directory as the settings want it.
 */

import { Directory, type DirectoryOptions } from '../broker/directory.js';
import { isDurable } from '../config/relations.js';
import type { Config } from '../config/schema.js';

export function createDirectory({
  config,
  ...parts
}: { readonly config: Config } & Pick<
  DirectoryOptions,
  'rings' | 'wakes' | 'journal' | 'made' | 'removed' | 'expire' | 'now' | 'randomBytes'
>): Directory {
  return new Directory({
    ...parts,
    ringBytes: isDurable(config) ? config.ringBytes : 0,
    defaults: {
      retention: {
        events: config.retentionEvents,
        bytes: config.retentionBytes,
        ageMs: config.retentionAgeMs,
      },
      overflow: config.overflow,
      ttlMs: config.ttlMs,
    },
    streamBytesMax: config.streamBytesMax,
    publishBytesMax: config.bodyBytesMax,
    autoCreate: config.autoCreate,
  });
}
