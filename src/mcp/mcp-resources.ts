import type { Client, RequestOptions } from "@modelcontextprotocol/client";
import { z } from "zod";
import {
  combineSignals,
  nameRule,
  optionsOf,
  reading,
  type OptionsSchema,
  recordRule,
  signalRule,
  textRule,
  wholeNumberRule,
} from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { type ContentPart, isBase64 } from "../state/index.ts";
import { type Redact, toolResult, type ToolResultPart } from "../tools/index.ts";
import { NO_TIMEOUT_MS } from "./mcp-connection.ts";
import type { McpPrompt, McpRequestOptions, McpResource, McpResources, McpResourceTemplate } from "./mcp-resource.ts";
import { failureOf, wordsOf } from "./mcp-errors.ts";
import { type ServerList, wholeList } from "./mcp-lists.ts";
import { loadSdk } from "./mcp-sdk.ts";
import { McpAuthorizationError } from "./mcp-authorization-error.ts";
import { McpServerError } from "./mcp-server-error.ts";
import type { ToolSource } from "./tool-source.ts";

const TIMEOUT_MS = 60_000;
/** Longest URI or name of a list, and longest description, in UTF-16 units. */
const LONGEST_NAME = 10_000;
const LONGEST_DESCRIPTION = 8_000;
const MOST_ARGUMENTS = 100;

const name = z.string().max(LONGEST_NAME);
const words = z
  .string()
  .transform((text) => text.slice(0, LONGEST_DESCRIPTION).toWellFormed())
  .optional()
  .catch(undefined);
const described = { name: name.catch(""), title: words, description: words, mimeType: words };

export const resourceList: ServerList<McpResource> = {
  method: "resources/list",
  field: "resources",
  entry: z.object({ uri: name.min(1), ...described, size: z.number().nonnegative().optional().catch(undefined) }),
};
export const templateList: ServerList<McpResourceTemplate> = {
  method: "resources/templates/list",
  field: "resourceTemplates",
  entry: z.object({ uriTemplate: name.min(1), ...described }),
};
const argumentSchema = z.object({ name, description: words, required: z.boolean().catch(false) });
const promptList: ServerList<McpPrompt> = {
  method: "prompts/list",
  field: "prompts",
  entry: z.object({
    ...described,
    name: name.min(1),
    arguments: z.array(argumentSchema).max(MOST_ARGUMENTS).catch([]),
  }),
};

const data = z.string().refine((text) => text === "" || isBase64(text), { message: "is not base64" });
const mimeType = z.string().optional();
const contents = z.union([
  z.object({ uri: name, mimeType, text: z.string() }),
  z.object({ uri: name, mimeType, blob: data }),
]);
export const readSchema = z.looseObject({ contents: z.array(contents) });
const block = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({ type: z.literal("image"), data, mimeType: z.string() }),
  z.object({ type: z.literal("audio"), data, mimeType: z.string() }),
  z.object({ type: z.literal("resource"), resource: contents }),
  z.object({ type: z.literal("resource_link"), uri: name }),
]);
const promptSchema = z.looseObject({
  description: words,
  messages: z.array(
    z.object({
      role: z.enum(["user", "assistant"]),
      content: z.union([block.transform((one) => [one]), z.array(block)]),
    }),
  ),
});

/** The functions that read resources and prompts. */
export function resourcesOf(source: ToolSource): McpResources {
  const { options: server, secrets } = source;
  const of = `mcp("${server.name}")`;
  const ask = requesterOf(source);
  const listed = async <Entry extends object>(
    list: ServerList<Entry>,
    options: McpRequestOptions | undefined,
  ): Promise<Entry[]> => {
    const given = requestOptionsOf(options, `${of}.${list.field}()`);
    return await ask(`the ${list.field} cannot be listed`, given, async (client, request) => {
      const capability = list.method.startsWith("prompts") ? "prompts" : "resources";
      if (client.getServerCapabilities()?.[capability] === undefined) return [];
      const entries = await wholeList(client, list, request);
      return entries.map((entry) => redacted(entry, secrets.redact));
    });
  };
  return {
    resources: async (options) => await listed(resourceList, options),
    resourceTemplates: async (options) => await listed(templateList, options),
    prompts: async (options) => await listed(promptList, options),
    readResource: async (given, options) => {
      const uri = uriOf(given, `${of}.readResource()`);
      const asked = requestOptionsOf(options, `${of}.readResource()`);
      return await ask(`the resource ${JSON.stringify(uri)} cannot be read`, asked, async (client, request) => {
        const read = await client.request({ method: "resources/read", params: { uri } }, readSchema, request);
        return partsOf(
          read.contents.map((resource) => ({ type: "resource", resource })),
          secrets.redact,
        );
      });
    },
    prompt: async (given, args = {}, options) => {
      const where = `${of}.prompt()`;
      const prompt = nameRule(given, `${where}: name`) as string;
      const filled = argumentsOf(args, where);
      const asked = requestOptionsOf(options, where);
      return await ask(`the prompt ${JSON.stringify(prompt)} cannot be read`, asked, async (client, request) => {
        const params = { name: prompt, arguments: filled };
        const { description, messages } = await client.request(
          { method: "prompts/get", params },
          promptSchema,
          request,
        );
        return {
          ...(description === undefined ? {} : { description: secrets.redact(description) }),
          messages: messages.map(({ role, content }) => ({ role, content: partsOf(content, secrets.redact) })),
        };
      });
    },
  };
}

type Work<Result> = (client: Client, request: RequestOptions) => Promise<Result>;

/** Sends requests that may be repeated; a lost connection or session is replaced once. */
export function requesterOf({ options: server, pool, secrets }: ToolSource) {
  return async <Result>(
    failure: string,
    { actorId = null, signal, timeoutMs = TIMEOUT_MS }: McpRequestOptions,
    work: Work<Result>,
  ): Promise<Result> => {
    const limit = AbortSignal.timeout(timeoutMs);
    const either = combineSignals([signal, limit]);
    const request = { signal: either.signal, timeout: NO_TIMEOUT_MS };
    const send = async (): Promise<Result> =>
      await pool.use({ actorId }, either.signal, async ({ client }) => await work(client, request));
    try {
      return await send().catch(async (error: unknown) => {
        const { isConnectionLost, isSessionLost } = failureOf(await loadSdk(), error, true);
        if (either.signal.aborted || error instanceof McpServerError) throw error;
        if (!isConnectionLost && !isSessionLost) throw error;
        return await send();
      });
    } catch (error) {
      if (signal?.aborted === true) throw signal.reason;
      if (error instanceof McpAuthorizationError) throw error;
      const reason = limit.aborted ? `the server has not answered within ${timeoutMs} ms` : wordsOf(error);
      throw new McpServerError(secrets.redact(`mcp("${server.name}"): ${failure}: ${reason}`));
    } finally {
      either.dispose();
    }
  };
}

const requestOptionsSchema: OptionsSchema<McpRequestOptions> = {
  rules: {
    actorId: (value, where) => (value === null ? null : nameRule(value, where)),
    signal: signalRule,
    timeoutMs: wholeNumberRule(1, 2_000_000_000),
  },
  instead: { timeout: "timeoutMs", auth: "actorId", owner: "actorId" },
};

function requestOptionsOf(options: McpRequestOptions | undefined, of: string): McpRequestOptions {
  return optionsOf<McpRequestOptions>(options ?? {}, of, requestOptionsSchema);
}

/** The URI is only passed on: the server decides what it means. */
function uriOf(given: unknown, of: string): string {
  if (typeof given === "string" && given !== "" && given.length <= LONGEST_NAME && given.isWellFormed()) return given;
  throw new InvalidInputError(`${of}: the uri must be a text of 1 to ${LONGEST_NAME} characters`);
}

/** A checked copy. */
function argumentsOf(given: unknown, of: string): Record<string, string> {
  return reading(`${of}: args`, () => ({
    ...(recordRule("an object of texts", textRule)(given, `${of}: args`) as Record<string, string>),
  }));
}

/** Content blocks of the protocol in our form. */
function partsOf(blocks: readonly z.infer<typeof block>[], redact: Redact): ContentPart[] {
  const parts = blocks.map((one): ToolResultPart => {
    if (one.type === "resource_link") return { type: "text", text: redact(one.uri) };
    const body = one.type === "resource" ? one.resource : one;
    if ("text" in body) return { type: "text", text: redact(body.text.toWellFormed()) };
    const isEmpty = ("blob" in body ? body.blob : body.data) === "";
    // The forms of the protocol are among those that results of tools have.
    return isEmpty ? { type: "text", text: "" } : (one as unknown as ToolResultPart);
  });
  return [...toolResult({ content: parts }).content];
}

/** The entry without secrets, for a list. */
export function redacted<Entry extends object>(entry: Entry, redact: Redact): Entry {
  const fields = Object.entries(entry).map(([field, value]: [string, unknown]) => {
    if (typeof value === "string") return [field, redact(value)];
    if (!Array.isArray(value)) return [field, value];
    return [field, value.map((one: object) => redacted(one, redact))];
  });
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined)) as Entry;
}
