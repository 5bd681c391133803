import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The checkout, seen from `build/test/support/`, where this file runs. */
export const REPOSITORY_ROOT = resolve(fileURLToPath(new URL('../../../', import.meta.url)));

/** The program under test, as it ships. */
export const MAIN_FILE = resolve(REPOSITORY_ROOT, 'dist/main.js');
