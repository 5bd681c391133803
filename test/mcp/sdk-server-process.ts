/**
 * A server of the SDK in a process of its own, which ends with its parent: `sdk-server-process.js VERSION [BROKER_PORT]`.
 * With a broker its sessions are kept there, and it takes up those of others.
 */

import { GaplessEventStore } from '#gapless/mcp-sdk/mcp-sdk.js';
import { SdkServer } from './sdk-server.js';

const [version, brokerPort] = process.argv.slice(2);
const broker = { url: `http://127.0.0.1:${brokerPort}` };
const server = await SdkServer.start({
  version: version === '1' ? 1 : 2,
  ...(brokerPort === undefined
    ? {}
    : { takesUpSessions: true, storeOf: (session) => new GaplessEventStore({ broker, session }) }),
});
process.once('disconnect', () => process.exit(0));
process.send?.(server.url);
