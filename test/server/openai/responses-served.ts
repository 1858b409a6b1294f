import OpenAI, { APIError } from "openai";
import type { Response as ModelResponse, ResponseStreamEvent } from "openai/resources/responses/responses";
import { type AgentDefinition, createRuntime, type Runtime, type RuntimeOptions } from "troupe";
import { apiSurface, openaiSurface, type ServeOptions } from "troupe/server";
import { onTestFinished } from "vitest";
import { desk, showTool } from "../ag-ui/ag-ui-served.ts";
import { serve, type Served, tokens } from "../served.ts";
import { clientOf } from "./official-client.ts";

export interface ResponsesServed extends Served {
  readonly runtime: Runtime;
  readonly removed: string[];
  readonly client: OpenAI;
}

/** The agent that follows its input, behind this surface and troupe's own API. */
export async function responsesServed(
  options: Partial<RuntimeOptions> = {},
  serving: Partial<ServeOptions> = {},
): Promise<ResponsesServed> {
  const removed: string[] = [];
  return { ...(await servedAgent(desk(removed), options, serving)), removed };
}

export async function servedAgent(
  definition: AgentDefinition,
  options: Partial<RuntimeOptions> = {},
  serving: Partial<ServeOptions> = {},
): Promise<Omit<ResponsesServed, "removed">> {
  const runtime = await createRuntime({ agents: [definition], ...options });
  onTestFinished(() => runtime.shutdown());
  const served = serve(runtime, { surfaces: [apiSurface(), openaiSurface()], ...serving });
  return { ...served, runtime, client: clientOf(served.server) };
}

/** The official client of Ann, at the URL of a server. */
export function clientAt(url: string): OpenAI {
  return new OpenAI({ apiKey: tokens.ann, maxRetries: 0, baseURL: `${url}/v1` });
}

/** Joins consecutive pieces of a text, with the number of the last; other events are unchanged. */
export function joined(events: readonly ResponseStreamEvent[]): readonly unknown[] {
  const found: { type: string; sequence_number: number; delta?: string }[] = [];
  for (const event of events as readonly (ResponseStreamEvent & { readonly delta?: string })[]) {
    const last = found.at(-1);
    if (last?.delta === undefined || last.type !== event.type) found.push({ ...event });
    else found.splice(-1, 1, { ...event, delta: last.delta + event.delta });
  }
  return found;
}

/** The items of a response as readable texts. */
export function shown({ output }: Pick<ModelResponse, "output">): readonly string[] {
  return output.map((item) => {
    switch (item.type) {
      case "message":
        return item.content.map((part) => (part.type === "output_text" ? part.text : part.type)).join("");
      case "reasoning":
        return `(${(item.content ?? []).map(({ text }) => text).join("")})`;
      case "mcp_call": {
        const told = item.output ?? (item.error?.type === "mcp_tool_execution_error" ? textIn(item.error.content) : "");
        return `${item.server_label}.${item.name}(${item.arguments}) ${item.status}: ${told}`;
      }
      case "mcp_approval_request":
        return `may ${item.server_label} ${item.name}(${item.arguments})?`;
      case "function_call":
        return `call ${item.name}(${item.arguments})`;
      default:
        return item.type;
    }
  });
}

function textIn(content: unknown): string {
  return (content as readonly { readonly text: string }[]).map(({ text }) => text).join("");
}

export async function all<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** The response at the end of a stream. */
export function ended(events: readonly ResponseStreamEvent[]): ModelResponse {
  const last = events.at(-1);
  if (last?.type !== "response.completed") throw new Error(`the stream ended with ${last?.type}`);
  return last.response;
}

/** The type of each event, with its text. */
export function lines(events: readonly ResponseStreamEvent[]): readonly string[] {
  return events.map((event) =>
    "delta" in event && typeof event.delta === "string" ? `${event.type} ${event.delta}` : event.type,
  );
}

/** The id for the answer to the only approval or call. */
export function openOf({ output }: Pick<ModelResponse, "output">): string {
  const ids = output.flatMap((item) => {
    if (item.type === "mcp_approval_request") return [item.id];
    return item.type === "function_call" ? [item.call_id] : [];
  });
  if (ids.length !== 1) throw new Error(`the response asks for ${ids.length} answers`);
  return ids.join("");
}

export function approving(response: ModelResponse, approve = true, reason?: string) {
  const item = { type: "mcp_approval_response", approval_request_id: openOf(response), approve } as const;
  return { previous_response_id: response.id, input: [reason === undefined ? item : { ...item, reason }] };
}

export function returning(response: ModelResponse, output: string) {
  const item = { type: "function_call_output", call_id: openOf(response), output } as const;
  return { previous_response_id: response.id, input: [item] };
}

/** The status, the code and the parameter of an error. */
export async function refusal(asked: PromiseLike<unknown>): Promise<readonly unknown[]> {
  try {
    await asked;
  } catch (error) {
    if (error instanceof APIError) return [error.status, error.code, error.param];
    throw error;
  }
  throw new Error("it was not refused");
}

/** A tool of the client. */
export const show = { type: "function", strict: false, ...showTool } as const;
