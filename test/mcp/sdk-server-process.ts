/** A server of the SDK for tests that kill it: `sdk-server-process.js VERSION BROKER_PORT`, which ends with its parent. */

import { GaplessEventStore } from '#gapless/mcp-sdk/mcp-sdk.js';
import { SdkServer } from './sdk-server.js';

const [version, brokerPort] = process.argv.slice(2);
const server = await SdkServer.start({
  version: version === '1' ? 1 : 2,
  takesUpSessions: true,
  storeOf: (session) => new GaplessEventStore({ broker: { url: `http://127.0.0.1:${brokerPort}` }, session }),
});
process.once('disconnect', () => process.exit(0));
process.send?.(server.url);
