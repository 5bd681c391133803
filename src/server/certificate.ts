/**
 * Checks that a certificate and its key can be used, and says which of them is wrong and why: an edge would only fail.
 */

import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { Config } from '../config/schema.js';

/** @throws Error that says which file is wrong, and why. */
export async function checkCertificate({ tlsCertFile, tlsKeyFile }: Config): Promise<void> {
  if (tlsCertFile === null || tlsKeyFile === null) return;
  const [cert, key] = [await readFile(tlsCertFile), await readFile(tlsKeyFile)];
  try {
    createSecureContext({ cert });
  } catch (error) {
    throw new Error(`${tlsCertFile}: ${(error as Error).message}`);
  }
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    throw new Error(`${tlsKeyFile}: ${(error as Error).message}`);
  }
}
