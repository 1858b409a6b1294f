import { sseFrames } from "../support/sse-frames.ts";
import type { Asked, Served, User } from "./served.ts";

/** A user's message in a conversation with a name of the user's choice. */
export interface Saying {
  readonly as?: User | undefined;
  readonly conversation: string;
  readonly text: string;
}

/** Drives one protocol for the tests. */
export interface Wire {
  readonly name: string;
  /** Sends a message and returns the answer, or `null` if a request has to be decided first. */
  readonly say: (served: Served, saying: Saying) => Promise<string | null>;
  /** Answers the open question of the conversation, and returns the agent's answer. */
  readonly answer: (served: Served, answer: Saying & { readonly requestId: string }) => Promise<string | null>;
  /** The stream of the open turn in a conversation, for a client that did not begin it. */
  readonly look?: (served: Served, place: ConversationTurn) => Promise<Response>;
  /** Cancels the open turn. */
  readonly cancel?: (served: Served, place: ConversationTurn) => Promise<Response>;
}

/** A conversation and its turn. */
export interface ConversationTurn {
  readonly conversation: string;
  readonly agentId: string;
  /** From 1. */
  readonly turn: number;
}

async function posted(served: Served, path: string, { body, ...asked }: Asked): Promise<unknown> {
  const response = await served.ask(path, { method: "POST", body, ...asked });
  const text = await response.text();
  if (response.status >= 300) throw new Error(`${path} was answered with ${response.status}: ${text}`);
  return JSON.parse(text);
}

const api: Wire = {
  name: "the own API",
  say: async (served, { as, conversation, text }) => {
    const opened = await posted(served, "/api/agents", { as, body: { definition: "desk", key: conversation } });
    const { agentId } = opened as { readonly agentId: string };
    const asked = { as, body: { input: text }, headers: { prefer: "wait=30" } };
    return answerIn(await posted(served, `/api/agents/${agentId}/turns`, asked));
  },
  answer: async (served, { as, text, requestId }) => {
    const body = { verdict: "answered", result: text };
    await posted(served, `/api/requests/${requestId.replace("#", ".")}`, { as, body });
    const [agentId = "", rest = ""] = requestId.split("#");
    const path = `/api/agents/${agentId}/turns/${rest.split(":")[0]}`;
    const response = await served.ask(path, { as, headers: { prefer: "wait=30" } });
    return answerIn(await response.json());
  },
  look: (served, { agentId }) => served.ask(`/api/trees/${agentId}/events`),
  cancel: (served, { agentId, turn }) =>
    served.ask(`/api/agents/${agentId}/turns/${turn}/abort`, { method: "POST", body: {} }),
};

function answerIn(turn: unknown): string | null {
  const { result } = turn as { readonly result: { readonly status: string; readonly text: string } | null };
  return result?.text ?? null;
}

interface Task {
  readonly task: {
    readonly artifacts?: readonly {
      readonly artifactId: string;
      readonly parts: readonly { readonly text?: string }[];
    }[];
  };
}

const a2aVersion = { "a2a-version": "1.0" };

const a2a: Wire = {
  name: "A2A",
  say: async (served, { as, conversation, text }) => {
    const message = { messageId: crypto.randomUUID(), role: "ROLE_USER", contextId: conversation, parts: [{ text }] };
    const { task } = (await posted(served, "/a2a/desk/message:send", {
      as,
      body: { message },
      headers: a2aVersion,
    })) as Task;
    return task.artifacts?.find(({ artifactId }) => artifactId === "answer")?.parts[0]?.text ?? null;
  },
  answer: (served, answer) => a2a.say(served, answer),
  look: (served, { agentId, turn }) =>
    served.ask(`/a2a/desk/tasks/${agentId}.${turn}:subscribe`, { headers: a2aVersion }),
  cancel: (served, { agentId, turn }) =>
    served.ask(`/a2a/desk/tasks/${agentId}.${turn}:cancel`, { method: "POST", body: {}, headers: a2aVersion }),
};

interface AgUiRun {
  readonly as?: User | undefined;
  readonly threadId: string;
  readonly messages?: readonly object[];
  readonly resume?: readonly object[];
}

async function agUiRun(served: Served, { as, ...body }: AgUiRun): Promise<Response> {
  const run = { runId: crypto.randomUUID(), messages: [], ...body };
  return await served.ask("/ag-ui/desk", { as, method: "POST", body: run });
}

async function agUiAnswer(response: Response): Promise<string | null> {
  let text: string | null = null;
  let outcome: string | undefined;
  for await (const { data } of sseFrames(response)) {
    const event = JSON.parse(data) as { type: string; delta?: string; outcome?: { type: string } };
    if (event.type === "TEXT_MESSAGE_START") text = "";
    if (event.type === "TEXT_MESSAGE_CONTENT") text = (text ?? "") + event.delta;
    if (event.type === "RUN_FINISHED") outcome = event.outcome?.type;
  }
  return outcome === "success" ? text : null;
}

const agUi: Wire = {
  name: "AG-UI",
  say: async (served, { as, conversation: threadId, text }) => {
    const messages = [{ id: crypto.randomUUID(), role: "user", content: text }];
    return await agUiAnswer(await agUiRun(served, { as, threadId, messages }));
  },
  answer: async (served, { as, conversation: threadId, text, requestId: interruptId }) => {
    const resume = [{ interruptId, status: "resolved", payload: text }];
    return await agUiAnswer(await agUiRun(served, { as, threadId, resume }));
  },
  look: (served, { conversation: threadId }) => agUiRun(served, { threadId }),
  cancel: (served, { conversation: threadId }) =>
    served.ask("/ag-ui/desk/cancel", { method: "POST", body: { threadId } }),
};

const chat: Wire = {
  name: "chat completions",
  say: async (served, { as, conversation, text }) => {
    const body = { model: "desk", messages: [{ role: "user", content: text }] };
    const headers = { "x-troupe-conversation": conversation };
    const { choices, troupe } = (await posted(served, "/v1/chat/completions", { as, body, headers })) as {
      readonly choices: readonly { readonly message: { readonly content: string | null } }[];
      readonly troupe: { readonly requests?: readonly unknown[] };
    };
    return (troupe.requests ?? []).length > 0 ? null : (choices[0]?.message.content ?? null);
  },
  answer: (served, answer) => chat.say(served, answer),
};

const responses: Wire = {
  name: "responses",
  say: async (served, { as, conversation, text }) => {
    const body = { model: "desk", input: text, conversation };
    const { output } = (await posted(served, "/v1/responses", { as, body })) as {
      readonly output: readonly { readonly type: string; readonly content?: readonly { readonly text: string }[] }[];
    };
    return (
      output
        .findLast(({ type }) => type === "message")
        ?.content?.map(({ text: part }) => part)
        .join("") ?? null
    );
  },
  answer: (served, answer) => responses.say(served, answer),
};

async function aiSdkChat(
  served: Served,
  { as, conversation: id }: Omit<Saying, "text">,
  message: object,
): Promise<Response> {
  return await served.ask("/ai-sdk/desk", { as, method: "POST", body: { id, messages: [message] } });
}

async function aiSdkAnswer(response: Response): Promise<string | null> {
  let text: string | null = null;
  let status: string | undefined;
  for await (const { data } of sseFrames(response)) {
    if (data === "[DONE]") break;
    const chunk = JSON.parse(data) as { type: string; delta?: string; messageMetadata?: { status: string } };
    if (chunk.type === "text-start") text = "";
    if (chunk.type === "text-delta") text = (text ?? "") + chunk.delta;
    if (chunk.type === "finish") status = chunk.messageMetadata?.status;
  }
  return status === "completed" ? text : null;
}

const aiSdk: Wire = {
  name: "the AI SDK",
  say: async (served, { text, ...place }) => {
    const message = { id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text }] };
    return await aiSdkAnswer(await aiSdkChat(served, place, message));
  },
  answer: async (served, { text: output, requestId, ...place }) => {
    const toolCallId = requestId.slice(0, requestId.lastIndexOf(":"));
    const part = { type: "tool-ask_user", toolCallId, state: "output-available", input: {}, output };
    const message = { id: requestId.split(":")[0], role: "assistant", parts: [{ type: "step-start" }, part] };
    return await aiSdkAnswer(await aiSdkChat(served, place, message));
  },
  look: (served, { conversation }) => served.ask(`/ai-sdk/desk/${encodeURIComponent(conversation)}/stream`),
  cancel: (served, { conversation }) =>
    served.ask(`/ai-sdk/desk/${encodeURIComponent(conversation)}/stop`, { method: "POST", body: {} }),
};

/** Protocols on which clients name their conversations. */
export const wires: readonly Wire[] = [api, a2a, agUi, chat, responses, aiSdk];

/** Reads a stream until it contains the text. Throws if it ends before. */
export async function readUntil(reader: AsyncIterator<unknown>, text: string): Promise<void> {
  const decoder = new TextDecoder();
  for (let read = ""; !read.includes(text); ) {
    const { done, value } = await reader.next();
    if (done === true) throw new Error(`the stream has ended without ${JSON.stringify(text)}: ${read}`);
    read += decoder.decode(value as Uint8Array, { stream: true });
  }
}
