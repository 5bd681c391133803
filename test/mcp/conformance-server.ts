/**
 * What the official conformance suite asks of a server, on the low-level `Server` of the SDK's version 1: its own
 * example is not part of its package.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js';
import {
  CallToolRequestSchema,
  type CallToolResult,
  CompleteRequestSchema,
  CreateMessageResultSchema,
  ElicitResultSchema,
  GetPromptRequestSchema,
  type GetPromptResult,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
  type ReadResourceResult,
  type ServerNotification,
  type ServerRequest,
  SetLevelRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { ENUM_FORM, FORM_WITH_DEFAULTS, SCHEMA_2020_12 } from './conformance-schemas.js';

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;
type Tool = (extra: Extra, given: Record<string, unknown>) => Promise<CallToolResult>;

/** One red pixel, and a RIFF header without samples. */
const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const WAV = Buffer.from('RIFF$\0\0\0WAVEfmt ').toString('base64');

const image = { type: 'image' as const, data: PNG, mimeType: 'image/png' };
const text = (words: string) => ({ type: 'text' as const, text: words });
const says = (words: string): CallToolResult => ({ content: [text(words)] });
const resource = (uri: string, mimeType: string, words: string) => ({
  type: 'resource' as const,
  resource: { uri, mimeType, text: words },
});

async function progress({ _meta, sendNotification }: Extra, done: number): Promise<void> {
  const progressToken = _meta?.progressToken;
  if (progressToken === undefined) return;
  await sendNotification({
    method: 'notifications/progress',
    params: { progressToken, progress: done, total: 100 },
  });
}

async function elicit(
  extra: Extra,
  requestedSchema: object,
  message = 'Say something',
): Promise<CallToolResult> {
  const answer = await extra.sendRequest(
    { method: 'elicitation/create', params: { message, requestedSchema } } as ServerRequest,
    ElicitResultSchema,
  );
  return says(`Elicitation completed: action=${answer.action}, content=${JSON.stringify(answer.content)}`);
}

const TOOLS: Readonly<Record<string, Tool>> = {
  test_simple_text: async () => says('This is a simple text response for testing.'),
  test_image_content: async () => ({ content: [image] }),
  test_audio_content: async () => ({ content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] }),
  test_embedded_resource: async () => ({
    content: [resource('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')],
  }),
  test_multiple_content_types: async () => ({
    content: [
      text('Multiple content types test:'),
      image,
      resource('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
    ],
  }),
  test_tool_with_logging: async ({ sendNotification }) => {
    for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
      await sendNotification({ method: 'notifications/message', params: { level: 'info', data } });
      await delay(50);
    }
    return says('Logged.');
  },
  test_error_handling: async () => ({
    ...says('This tool intentionally returns an error for testing'),
    isError: true,
  }),
  test_tool_with_progress: async (extra) => {
    for (const done of [0, 50, 100]) {
      await progress(extra, done);
      await delay(50);
    }
    return says('Progress reported.');
  },
  test_sampling: async (extra, { prompt }) => {
    const answer = await extra.sendRequest(
      {
        method: 'sampling/createMessage',
        params: { messages: [{ role: 'user', content: text(String(prompt)) }], maxTokens: 100 },
      },
      CreateMessageResultSchema,
    );
    return says(`LLM response: ${JSON.stringify(answer.content)}`);
  },
  test_elicitation: (extra, { message }) =>
    elicit(
      extra,
      { type: 'object', properties: { response: { type: 'string' } }, required: ['response'] },
      String(message),
    ),
  test_elicitation_sep1034_defaults: (extra) => elicit(extra, FORM_WITH_DEFAULTS),
  test_elicitation_sep1330_enums: (extra) => elicit(extra, ENUM_FORM),
  json_schema_2020_12_tool: async () => says('Taken.'),
  // Polls where the transport can be resumed; elsewhere it takes its time, which is what a front has to bridge.
  test_reconnection: async ({ closeSSEStream }) => {
    closeSSEStream?.();
    await delay(300);
    return says('Reconnection test completed successfully.');
  },
};

const PROMPTS: Readonly<Record<string, (given: Record<string, string>) => GetPromptResult['messages']>> = {
  test_simple_prompt: () => [{ role: 'user', content: text('This is a simple prompt for testing.') }],
  test_prompt_with_arguments: ({ arg1, arg2 }) => [
    { role: 'user', content: text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`) },
  ],
  test_prompt_with_embedded_resource: ({ resourceUri = '' }) => [
    { role: 'user', content: resource(resourceUri, 'text/plain', 'Embedded resource content for testing.') },
    { role: 'user', content: text('Please process the embedded resource above.') },
  ],
  test_prompt_with_image: () => [
    { role: 'user', content: image },
    { role: 'user', content: text('Please analyze the image above.') },
  ],
};

const PROMPT_ARGUMENTS: Readonly<Record<string, readonly string[]>> = {
  test_prompt_with_arguments: ['arg1', 'arg2'],
  test_prompt_with_embedded_resource: ['resourceUri'],
};

function read(uri: string): ReadResourceResult['contents'] {
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  if (id !== undefined) {
    const data = { id, templateTest: true, data: `Data for ID: ${id}` };
    return [{ uri, mimeType: 'application/json', text: JSON.stringify(data) }];
  }
  if (uri === 'test://static-binary') return [{ uri, mimeType: 'image/png', blob: PNG }];
  return [{ uri, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }];
}

export function conformanceServer(): Server {
  const server = new Server(
    { name: 'conformance', version: '1.0.0' },
    {
      capabilities: { tools: {}, prompts: {}, resources: { subscribe: true }, completions: {}, logging: {} },
    },
  );
  server.setRequestHandler(ListToolsRequestSchema, async () => ({
    tools: Object.keys(TOOLS).map((name) => ({
      name,
      description: `${name} of the conformance suite`,
      inputSchema: name === 'json_schema_2020_12_tool' ? SCHEMA_2020_12 : { type: 'object' as const },
    })),
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const tool = TOOLS[params.name];
    if (tool === undefined) throw new Error(`no tool ${params.name}`);
    return tool(extra, params.arguments ?? {});
  });
  server.setRequestHandler(ListPromptsRequestSchema, async () => ({
    prompts: Object.keys(PROMPTS).map((name) => ({
      name,
      description: `${name} of the conformance suite`,
      arguments: (PROMPT_ARGUMENTS[name] ?? []).map((argument) => ({
        name: argument,
        description: argument,
        required: true,
      })),
    })),
  }));
  server.setRequestHandler(GetPromptRequestSchema, async ({ params }) => ({
    messages: PROMPTS[params.name]?.(params.arguments ?? {}) ?? [],
  }));
  server.setRequestHandler(ListResourcesRequestSchema, async () => ({
    resources: ['static-text', 'static-binary', 'watched-resource'].map((name) => ({
      name,
      uri: `test://${name}`,
      description: name,
      mimeType: name === 'static-binary' ? 'image/png' : 'text/plain',
    })),
  }));
  server.setRequestHandler(ListResourceTemplatesRequestSchema, async () => ({
    resourceTemplates: [{ name: 'template', uriTemplate: 'test://template/{id}/data', description: 'data' }],
  }));
  server.setRequestHandler(ReadResourceRequestSchema, async ({ params }) => ({ contents: read(params.uri) }));
  server.setRequestHandler(SubscribeRequestSchema, async () => ({}));
  server.setRequestHandler(UnsubscribeRequestSchema, async () => ({}));
  server.setRequestHandler(SetLevelRequestSchema, async () => ({}));
  server.setRequestHandler(CompleteRequestSchema, async () => ({
    completion: { values: ['paris', 'park'] },
  }));
  return server;
}
