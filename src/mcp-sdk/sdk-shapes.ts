/** What of the SDK is touched here, by shape: its types differ between versions 1 and 2, and these parts do not. */

/** Of a request and its response (JSON-RPC 2.0, section 4). */
export type JsonRpcId = string | number;

/** A message as the SDK hands it over. An object without members is not a message: with it the SDK primes a stream. */
export interface JsonRpcMessage {
  readonly id?: JsonRpcId;
  readonly method?: string;
  readonly [member: string]: unknown;
}

/** A server's transport, such as `StreamableHTTPServerTransport`. */
export interface SdkTransport {
  send(message: object, options?: { readonly relatedRequestId?: JsonRpcId }): Promise<void>;
}

/** What `createMcpHandler` of version 2 tells its listeners. */
export type ServerEvent =
  | { kind: 'tools_list_changed' }
  | { kind: 'prompts_list_changed' }
  | { kind: 'resources_list_changed' }
  | { kind: 'resource_updated'; uri: string };

/** The stream of a session that belongs to no request: the name is the same in every session of the SDK. */
export const STANDALONE_STREAM = '_GET_stream';

/** The id of the request that a message answers; undefined where it is no response. */
export function answeredBy(message: JsonRpcMessage): JsonRpcId | undefined {
  return message.method === undefined && ('result' in message || 'error' in message) ? message.id : undefined;
}
