import type { IncomingHttpHeaders } from "node:http";
import { onTestFinished } from "vitest";
import { startRawServer } from "./raw-server.ts";

/** An item of `output`, as OpenAI's Responses API sends it once it is complete. */
export type OutputItem = Readonly<Record<string, unknown>> & { readonly type: string; readonly id: string };

export function thought(id: string, summary: readonly string[], encrypted = `encrypted-${id}`): OutputItem {
  const parts = summary.map((text) => ({ type: "summary_text", text }));
  return { type: "reasoning", id, summary: parts, encrypted_content: encrypted };
}

interface MessageFields {
  readonly phase?: "commentary" | "final_answer";
  readonly annotations?: readonly object[];
}

export function message(id: string, text: string, { phase, annotations = [] }: MessageFields = {}): OutputItem {
  const content = [{ type: "output_text", text, annotations, logprobs: [] }];
  const base = { type: "message", id, role: "assistant", status: "completed", content };
  return phase === undefined ? base : { ...base, phase };
}

export function refusal(id: string, text: string): OutputItem {
  const content = [{ type: "refusal", refusal: text }];
  return { type: "message", id, role: "assistant", status: "completed", content };
}

export function call(id: string, callId: string, args: object, name = "height"): OutputItem {
  return { type: "function_call", id, call_id: callId, name, arguments: JSON.stringify(args), status: "completed" };
}

export const usage = {
  input_tokens: 100,
  input_tokens_details: { cached_tokens: 40, cache_write_tokens: 20 },
  output_tokens: 30,
  output_tokens_details: { reasoning_tokens: 12 },
  total_tokens: 130,
};

export interface ResponsesReply {
  readonly output?: readonly OutputItem[];
  /** Default: completed. */
  readonly incomplete?: string;
  readonly failed?: { readonly code: string; readonly message: string };
  readonly usage?: object | null;
}

/** The whole response. */
export function responseOf({ output = [], incomplete, failed, usage: told = usage }: ResponsesReply): object {
  return {
    id: "resp_1",
    object: "response",
    created_at: 1,
    model: "gpt-5-test",
    status: failed ? "failed" : incomplete === undefined ? "completed" : "incomplete",
    error: failed ?? null,
    incomplete_details: incomplete === undefined ? null : { reason: incomplete },
    output,
    usage: told,
  };
}

type WireEvent = Readonly<Record<string, unknown>> & { readonly type: string };

/** The documented events of a streamed response, in their order. */
export function eventsOf(reply: ResponsesReply): readonly WireEvent[] {
  const events: WireEvent[] = [];
  const add = (event: WireEvent): void => {
    events.push({ ...event, sequence_number: events.length });
  };
  const begun = { ...responseOf({}), status: "in_progress", output: [], usage: null };
  add({ type: "response.created", response: begun });
  add({ type: "response.in_progress", response: begun });
  for (const [output_index, item] of (reply.output ?? []).entries()) {
    for (const event of eventsOfItem(item)) add({ ...event, output_index });
  }
  const response = responseOf(reply);
  const end = reply.failed ? "failed" : reply.incomplete === undefined ? "completed" : "incomplete";
  add({ type: `response.${end}`, response });
  return events;
}

function eventsOfItem(item: OutputItem): readonly WireEvent[] {
  const item_id = item.id;
  const added = (begun: object): WireEvent => ({ type: "response.output_item.added", item: { ...item, ...begun } });
  const done: WireEvent = { type: "response.output_item.done", item };
  switch (item.type) {
    case "reasoning": {
      const summary = item["summary"] as readonly { readonly text: string }[];
      const parts = summary.flatMap((part, summary_index): readonly WireEvent[] => [
        { type: "response.reasoning_summary_part.added", item_id, summary_index, part: { ...part, text: "" } },
        ...halves(part.text).map((delta) => ({
          type: "response.reasoning_summary_text.delta",
          item_id,
          summary_index,
          delta,
          obfuscation: "x7",
        })),
        { type: "response.reasoning_summary_text.done", item_id, summary_index, text: part.text },
        { type: "response.reasoning_summary_part.done", item_id, summary_index, part },
      ]);
      // While the item is open its encrypted content may be incomplete.
      return [added({ summary: [], encrypted_content: "enc" }), ...parts, done];
    }
    case "message": {
      const [part] = item["content"] as readonly Readonly<Record<string, unknown>>[];
      const kind = part?.["type"] === "refusal" ? "refusal" : "output_text";
      const text = String(part?.["type"] === "refusal" ? part["refusal"] : part?.["text"]);
      const at = { item_id, content_index: 0 };
      const notes = (part?.["annotations"] ?? []) as readonly object[];
      return [
        added({ content: [], status: "in_progress" }),
        { type: "response.content_part.added", ...at, part: { ...part, text: "" } },
        ...halves(text).map((delta) => ({ type: `response.${kind}.delta`, ...at, delta, obfuscation: "a1b2" })),
        ...notes.map((annotation, annotation_index) => ({
          type: "response.output_text.annotation.added",
          ...at,
          annotation_index,
          annotation,
        })),
        { type: `response.${kind}.done`, ...at, text },
        { type: "response.content_part.done", ...at, part },
        done,
      ];
    }
    case "function_call": {
      const text = String(item["arguments"]);
      return [
        added({ arguments: "", status: "in_progress" }),
        ...halves(text).map((delta) => ({ type: "response.function_call_arguments.delta", item_id, delta })),
        { type: "response.function_call_arguments.done", item_id, arguments: text },
        done,
      ];
    }
    default:
      return [added({ status: "in_progress" }), { type: `response.${item.type}.in_progress`, item_id }, done];
  }
}

function halves(text: string): readonly string[] {
  const half = Math.ceil(text.length / 2);
  return [text.slice(0, half), text.slice(half)].filter((piece) => piece !== "");
}

/** The text of an event stream with these events. */
export function streamText(events: readonly WireEvent[]): string {
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}

/** What the server answers to one request. */
export type ServerTurn =
  | ResponsesReply
  /** A refusal with a status. */
  | { readonly status: number; readonly error: object; readonly headers?: Readonly<Record<string, string>> }
  /** Only the first events; then the connection breaks, or stays open without a word. */
  | { readonly cut: readonly WireEvent[]; readonly how: "broken" | "silent" };

export interface ResponsesServer {
  readonly baseURL: string;
  /** The bodies of all requests. */
  readonly bodies: readonly Readonly<Record<string, unknown>>[];
  readonly paths: readonly string[];
  readonly headers: readonly IncomingHttpHeaders[];
}

/** A server that gives these answers in turn, the last one again and again, streamed or whole as the request asks. */
export async function responsesServer(...turns: readonly ServerTurn[]): Promise<ResponsesServer> {
  const bodies: Readonly<Record<string, unknown>>[] = [];
  const paths: string[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const server = await startRawServer((request, response, text) => {
    const turn = turns[Math.min(bodies.length, turns.length - 1)] ?? {};
    const body = JSON.parse(text) as Readonly<Record<string, unknown>>;
    bodies.push(body);
    paths.push(request.url ?? "");
    headers.push(request.headers);
    const isStreamed = body["stream"] === true;
    if ("status" in turn) {
      response.writeHead(turn.status, { "content-type": "application/json", ...turn.headers });
      response.end(JSON.stringify({ error: turn.error }));
    } else if ("cut" in turn) {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(streamText(turn.cut), () => turn.how === "broken" && response.destroy());
    } else {
      response.writeHead(200, { "content-type": isStreamed ? "text/event-stream" : "application/json" });
      response.end(isStreamed ? streamText(eventsOf(turn)) : JSON.stringify(responseOf(turn)));
    }
  });
  onTestFinished(() => server.stop());
  return { baseURL: `${server.origin}/v1`, bodies, paths, headers };
}
