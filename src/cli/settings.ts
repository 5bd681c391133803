import { readFileSync } from 'node:fs';
import { type LoadedConfig, loadConfig } from '../config/load.js';
import { settingsUsage } from '../config/settings-usage.js';

/** The settings that these flags, this process's environment and the config file make. */
export function loadSettings(argv: readonly string[]): LoadedConfig {
  return loadConfig(argv, process.env, (path) => readFileSync(path, 'utf8'));
}

/** What the help of each command that takes settings ends with. */
export function settingsHelp(): string {
  return [
    'Each setting is a flag, an environment variable and a key of the config file: --drain-ms 5s,',
    'GAPLESS_DRAIN_MS=5s and {"drainMs": "5s"}. A flag wins over the environment, the environment over',
    'the file, and the file over the default. A SIZE is in bytes or has KiB, MiB or GiB behind it, a TIME',
    'is in milliseconds or has s, m, h or d.',
    '',
    settingsUsage(),
  ].join('\n');
}
