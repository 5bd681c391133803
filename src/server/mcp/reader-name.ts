/**
 * Names of readers of MCP streams, which say what edge each is at.
 */

import { EDGES_MAX } from '../../ring/layout.js';

/** @param count of the edge's readers so far, from 1. */
export function readerName(count: number, edge: number): number {
  return count * EDGES_MAX + edge;
}

export function edgeOfReader(name: number): number {
  return name % EDGES_MAX;
}
