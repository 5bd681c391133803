/**
 * GET /v1/activity: what happened to those who came lately (contract 10).
 */

import { formatCursor, parseCursor } from '../../core/cursor.js';
import { RequestError } from '../../errors.js';
import type { ActivityAnswer } from '../../wire/happening.js';
import type { Exchange } from '../http/exchange.js';
import { Query } from '../http/query.js';
import type { RequestView } from '../http/request-view.js';

const LIMIT_ABSENT = 100;
const LIMIT_MAX = 1000;

export async function showActivity(exchange: Exchange, _name: string, req: RequestView): Promise<void> {
  const query = new Query(req.getQuery());
  const limit = query.count('limit', { min: 1, max: LIMIT_MAX, absent: LIMIT_ABSENT });
  const given = query.get('cursor');
  const cursor = given === undefined ? null : parseCursor(given);
  if (given !== undefined && cursor === null) throw new RequestError('malformed');
  exchange.watch();
  const { epoch, happenings, last, missed } = await exchange.edge.coordinator.activity(cursor, limit);
  const answer: ActivityAnswer = { activity: happenings, next: formatCursor(epoch, last), missed };
  exchange.sendJson(200, answer, { 'Cache-Control': 'no-store' });
}
