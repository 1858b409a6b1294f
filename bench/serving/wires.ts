import type { AgentDefinition, TroupeEvent } from "../../src/index.ts";
import {
  a2aSurface,
  agUiSurface,
  aiSdkSurface,
  apiSurface,
  openaiSurface,
  type Surface,
  tealSurface,
} from "../../src/server/index.ts";
import { type SseFrame, sseFrames } from "../../test/support/sse-frames.ts";

/** Posts a body to the server. Rejects if the request is refused. */
export type Post = (path: string, body: object, headers?: Readonly<Record<string, string>>) => Promise<Response>;

/** A conversation over a wire. A turn returns the answer's text, joined from the received pieces. */
export type Turn = (input: string) => Promise<string>;

/**
 * A hand-written client of a protocol, so that the server is measured and not an official client, which checks and copies
 * much. Its agent is named `agent`.
 */
export interface BenchWire {
  readonly name: string;
  surface(definition: AgentDefinition): Surface | Promise<Surface>;
  /** Opens a conversation. */
  open(post: Post): Promise<Turn> | Turn;
}

const stream = { accept: "text/event-stream" };

async function agentOf(post: Post): Promise<string> {
  const created = await post("/api/agents", { definition: "agent" });
  const { agentId } = (await created.json()) as { readonly agentId: string };
  return `/api/agents/${agentId}/turns`;
}

const apiWait: BenchWire = {
  name: "api, wait",
  surface: () => apiSurface(),
  open: async (post) => {
    const turns = await agentOf(post);
    return async (input) => {
      const response = await post(turns, { input }, { prefer: "wait=30" });
      const { status, result } = (await response.json()) as { status: string; result?: { readonly text: string } };
      if (status !== "completed" || result === undefined) throw new Error(`A turn ended ${status}.`);
      return result.text;
    };
  },
};

/** Joins the text from its pieces, as far as they are received. The stored answer replaces them. */
const apiStream: BenchWire = {
  name: "api, stream",
  surface: () => apiSurface(),
  open: async (post) => {
    const turns = await agentOf(post);
    return async (input) => {
      let text = "";
      return await lastOf(await post(turns, { input }, stream), ({ data }) => {
        const event = JSON.parse(data) as TroupeEvent;
        if (event.type === "text.delta") text += event.text;
        if (event.type === "text.snapshot") text = event.text;
        return event.type === "turn.completed" ? text : undefined;
      });
    };
  },
};

const teal: BenchWire = {
  name: "teal",
  surface: (definition) => tealSurface({ agents: [{ version: "1.0", definition }] }),
  open: (post) => {
    let taskId: string | null = null;
    return async (input) => {
      const body = { task_id: taskId, items: [{ content_type: "text", content: input }] };
      return await lastOf(await post("/agent/1.0/sse", body), ({ event, data }) => {
        const frame = JSON.parse(data) as { task_id: string; output?: string };
        taskId = frame.task_id;
        return event === "final-response" ? frame.output : undefined;
      });
    };
  },
};

/** The fields of a task or task update that the bench reads. */
interface A2aItem {
  readonly statusUpdate?: { readonly status: { readonly state: string } };
  readonly artifactUpdate?: {
    readonly append?: boolean;
    readonly artifact: { readonly artifactId: string; readonly parts: readonly { readonly text?: string }[] };
  };
}

function a2aOver(binding: "JSON-RPC" | "HTTP"): BenchWire {
  return {
    name: binding === "HTTP" ? "a2a, HTTP" : "a2a",
    surface: (definition) => a2aSurface({ agents: [{ definition }] }),
    open: (post) => {
      const contextId = crypto.randomUUID();
      return async (input) => {
        const message = { messageId: crypto.randomUUID(), contextId, role: "ROLE_USER", parts: [{ text: input }] };
        const version = { "a2a-version": "1.0" };
        const call = { jsonrpc: "2.0", id: 1, method: "SendStreamingMessage", params: { message } };
        const response = await (binding === "HTTP"
          ? post("/a2a/agent/message:stream", { message }, version)
          : post("/a2a/agent", call, version));
        let text = "";
        return await lastOf(response, ({ data }) => {
          const frame = JSON.parse(data) as A2aItem & { readonly result?: A2aItem };
          const { artifactUpdate, statusUpdate } = frame.result ?? frame;
          const piece = artifactUpdate?.artifact.parts[0]?.text ?? "";
          if (artifactUpdate) text = artifactUpdate.append === true ? text + piece : piece;
          return statusUpdate?.status.state === "TASK_STATE_COMPLETED" ? text : undefined;
        });
      };
    },
  };
}

/** The client sends the whole conversation with each request. */
const agUi: BenchWire = {
  name: "ag-ui",
  surface: () => agUiSurface(),
  open: (post) => {
    const threadId = crypto.randomUUID();
    const messages: object[] = [];
    return async (input) => {
      messages.push({ id: crypto.randomUUID(), role: "user", content: input });
      const run = { threadId, runId: crypto.randomUUID(), messages, tools: [], context: [] };
      let answer = { id: "", content: "" };
      const text = await lastOf(await post("/ag-ui/agent", run, stream), ({ data }) => {
        const event = JSON.parse(data) as { type: string; messageId: string; delta: string };
        if (event.type === "TEXT_MESSAGE_START") answer = { id: event.messageId, content: "" };
        if (event.type === "TEXT_MESSAGE_CONTENT") answer.content += event.delta;
        return event.type === "RUN_FINISHED" ? answer.content : undefined;
      });
      messages.push({ role: "assistant", ...answer });
      return text;
    };
  },
};

/** The client sends the whole conversation with each request, as `useChat` does. */
const aiSdk: BenchWire = {
  name: "ai-sdk",
  surface: () => aiSdkSurface(),
  open: (post) => {
    const id = crypto.randomUUID();
    const messages: object[] = [];
    return async (input) => {
      messages.push({ id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text: input }] });
      let answer = { id: "", text: "" };
      const text = await lastOf(await post("/ai-sdk/agent", { id, messages }, stream), ({ data }) => {
        const chunk = JSON.parse(data) as { readonly type: string; readonly messageId: string; readonly delta: string };
        if (chunk.type === "start") answer = { id: chunk.messageId, text: "" };
        if (chunk.type === "start-step") answer.text = "";
        if (chunk.type === "text-delta") answer.text += chunk.delta;
        return chunk.type === "finish" ? answer.text : undefined;
      });
      messages.push({ id: answer.id, role: "assistant", parts: [{ type: "text", text }] });
      return text;
    };
  },
};

/** Chat completions, in a conversation whose client sends no history. */
const openaiChat: BenchWire = {
  name: "openai, chat",
  surface: () => openaiSurface(),
  open: (post) => {
    const headers = { ...stream, "x-troupe-conversation": crypto.randomUUID() };
    return async (input) => {
      const body = { model: "agent", stream: true, messages: [{ role: "user", content: input }] };
      let text = "";
      return await lastOf(await post("/v1/chat/completions", body, headers), ({ data }) => {
        if (data === "[DONE]") return text;
        const { choices } = JSON.parse(data) as {
          choices: readonly { readonly delta: { readonly content?: string } }[];
        };
        text += choices[0]?.delta.content ?? "";
        return undefined;
      });
    };
  },
};

const openaiResponses: BenchWire = {
  name: "openai, responses",
  surface: () => openaiSurface(),
  open: (post) => {
    const conversation = crypto.randomUUID();
    return async (input) => {
      let text = "";
      return await lastOf(
        await post("/v1/responses", { model: "agent", conversation, stream: true, input }, stream),
        ({ event, data }) => {
          if (event === "response.output_text.delta") text += (JSON.parse(data) as { readonly delta: string }).delta;
          return event === "response.completed" ? text : undefined;
        },
      );
    };
  },
};

export const apiWires = { wait: apiWait, stream: apiStream };
/** Every wire, with clients that read a turn while it runs. */
export const benchWires: readonly BenchWire[] = [
  apiStream,
  teal,
  a2aOver("JSON-RPC"),
  a2aOver("HTTP"),
  agUi,
  aiSdk,
  openaiChat,
  openaiResponses,
];

/** Reads a stream up to the frame for which `read` returns the answer. */
async function lastOf(response: Response, read: (frame: SseFrame) => string | undefined): Promise<string> {
  for await (const frame of sseFrames(response)) {
    const text = read(frame);
    if (text !== undefined) return text;
  }
  throw new Error("The stream of a turn ended before the turn.");
}
