import type { Client, RequestOptions } from "@modelcontextprotocol/client";
import { ToolNotStartedError } from "../errors/index.ts";
import type { JsonObject } from "../state/index.ts";
import type { RunContext } from "../tools/index.ts";
import type { ListedTool } from "./listed-tool.ts";
import { NO_TIMEOUT_MS } from "./mcp-connection.ts";
import { callErrorOf, failureOf, wordsOf } from "./mcp-errors.ts";
import { pageOf } from "./mcp-lists.ts";
import type { McpResourceTemplate } from "./mcp-resource.ts";
import { readSchema, resourceList, templateList } from "./mcp-resources.ts";
import { McpAuthorizationError } from "./mcp-authorization-error.ts";
import { loadSdk } from "./mcp-sdk.ts";
import type { ToolSource } from "./tool-source.ts";
import { traceOfRun } from "./mcp-trace.ts";

/** Longest description of a resource in a list for the model, in UTF-16 units. */
const LONGEST_DESCRIPTION = 500;

interface Reading {
  readonly client: Client;
  readonly args: JsonObject;
  readonly meta: JsonObject;
  readonly request: RequestOptions;
}

type Read = (reading: Reading) => Promise<object>;

const listTool: ListedTool = {
  name: "list_resources",
  description: "Lists the resources of this server by their URIs, for read_resource, and the patterns of further URIs.",
  inputSchema: {
    type: "object",
    properties: { cursor: { type: "string", description: "nextCursor of the page before. Default: the first page." } },
  },
  annotations: { readOnlyHint: true },
};

const readTool: ListedTool = {
  name: "read_resource",
  description: "Reads a resource of this server by its URI.",
  inputSchema: { type: "object", properties: { uri: { type: "string" } }, required: ["uri"] },
  annotations: { readOnlyHint: true },
};

const reads: ReadonlyMap<ListedTool, Read> = new Map([
  [listTool, listResources],
  [readTool, readResource],
]);

/** The tools with which a model reads resources. They follow the rules of the server's own tools. */
export const resourceTools: readonly ListedTool[] = [...reads.keys()];

/** The result of one of `resourceTools`; `undefined` for other tools. */
export function resourceCallOf(
  source: ToolSource,
  listed: ListedTool,
): ((args: JsonObject, run: RunContext) => Promise<object>) | undefined {
  const read = reads.get(listed);
  return read && (async (args, run) => await resourceCall(source, { read, args, run }));
}

async function resourceCall(
  { options: { name }, pool }: ToolSource,
  { read, args, run }: { readonly read: Read; readonly args: JsonObject; readonly run: RunContext },
): Promise<object> {
  const { meta, headers } = traceOfRun(run);
  const request = { signal: run.signal, timeout: NO_TIMEOUT_MS, ...(headers === undefined ? {} : { headers }) };
  let isSent = false;
  try {
    return await pool.use({ actorId: run.actorId }, run.signal, async ({ client }) => {
      isSent = true;
      return await read({ client, args, meta: meta === undefined ? {} : { _meta: meta }, request });
    });
  } catch (error) {
    if (error instanceof McpAuthorizationError) throw error;
    const sdk = await loadSdk();
    // The server's refusal is its answer.
    if (error instanceof sdk.client.ProtocolError) {
      return { content: [{ type: "text", text: wordsOf(error) }], isError: true };
    }
    const notStarted = new ToolNotStartedError(`The MCP server "${name}" was not asked: ${wordsOf(error)}`);
    throw isSent ? callErrorOf(name, error, failureOf(sdk, error, true)) : notStarted;
  }
}

async function listResources({ client, args, meta, request }: Reading): Promise<object> {
  const { cursor } = args;
  const params = { ...meta, ...(cursor === undefined ? {} : { cursor }) };
  const { entries, nextCursor } = await pageOf(client, { list: resourceList, params }, request);
  const templates = cursor === undefined ? await firstTemplates({ client, args, meta, request }) : [];
  return {
    resources: entries.map(shortened),
    ...(templates.length === 0 ? {} : { templates: templates.map(shortened) }),
    ...(nextCursor === undefined ? {} : { nextCursor }),
  };
}

/** The first page of patterns; many servers have none, and refuse the request. */
async function firstTemplates({ client, meta, request }: Reading): Promise<readonly McpResourceTemplate[]> {
  const { client: sdk } = await loadSdk();
  try {
    return (await pageOf(client, { list: templateList, params: meta }, request)).entries;
  } catch (error) {
    if (error instanceof sdk.ProtocolError) return [];
    throw error;
  }
}

async function readResource({ client, args, meta, request }: Reading): Promise<object> {
  const params = { ...meta, uri: args["uri"] };
  const { contents } = await client.request({ method: "resources/read", params }, readSchema, request);
  return { content: contents.map((resource) => ({ type: "resource", resource })), isError: false };
}

function shortened<Entry extends { readonly description?: string | undefined }>(entry: Entry): Entry {
  const { description } = entry;
  if (description === undefined || description.length <= LONGEST_DESCRIPTION) return entry;
  return { ...entry, description: `${description.slice(0, LONGEST_DESCRIPTION).toWellFormed()}…` };
}
