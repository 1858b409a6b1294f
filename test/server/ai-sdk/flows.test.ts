// The official client of the AI SDK over this surface: each kind of part, approvals, tools of the page, resuming, and the history.
import { createRuntime, defineAgent, fallbackModel, openaiModel } from "troupe";
import { aiSdkSurface } from "troupe/server";
import { describe, expect, it, onTestFinished } from "vitest";
import { startModelServer } from "../../support/model-server.ts";
import { slowSpeaker } from "../../support/slow-speaker.ts";
import { deskServed, showTool } from "../ag-ui/ag-ui-served.ts";
import { serve } from "../served.ts";
import { type DeskMessage, loadedMessages, officialClient, textOfMessage } from "./official-client.ts";

const served = () => deskServed({}, { surfaces: [aiSdkSurface()] });

/** The parts of a message by type, with the state of a call. */
function shapeOf(message: DeskMessage | undefined): readonly string[] {
  return (message?.parts ?? []).map((part) => ("toolCallId" in part ? `${part.type} ${part.state}` : part.type));
}

function approvalOf(message: DeskMessage | undefined): string {
  const ids = (message?.parts ?? []).flatMap((part) => ("approval" in part ? (part.approval?.id ?? []) : []));
  return ids.at(-1) ?? "";
}

/** The fields of the client's message that the server stores. */
const stored = (messages: readonly DeskMessage[]) =>
  messages.map(({ id, role, metadata, parts }) => ({
    ...(role === "user" ? {} : { id }),
    role,
    metadata,
    parts: parts.filter(({ type }) => type !== "reasoning"),
  }));
const plain = (messages: readonly DeskMessage[]): unknown => JSON.parse(JSON.stringify(stored(messages)));
/** Without the JSON text of arguments, which the client keeps only of a call that it saw while it was written. */
const withoutRaw = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (name, one: unknown) => (name === "rawInput" ? undefined : one)));

describe("useChat's client", () => {
  it("gets text and reasoning, with usage and cost, and loads the same messages", async () => {
    const one = await served();
    const client = officialClient(one);
    const message = await client.say("think");
    expect(shapeOf(message)).toEqual(["step-start", "reasoning", "text"]);
    expect(textOfMessage(message)).toBe("It is so.");
    expect(message?.metadata).toMatchObject({ status: "completed", stopReason: "completed", turnId: message?.id });
    expect(message?.metadata?.usage?.totalTokens).toBeGreaterThan(0);
    await client.say("hello");
    expect(textOfMessage(client.chat.lastMessage)).toBe("2: hello");
    expect(plain(await loadedMessages(one))).toEqual(plain(client.chat.messages));
  });

  it("approves a call, and the same message continues", async () => {
    const one = await served();
    const client = officialClient(one);
    const asked = await client.say("remove");
    expect(shapeOf(asked)).toEqual(["step-start", "tool-remove approval-requested"]);
    expect(asked?.metadata?.status).toBe("waiting");
    expect(plain(await loadedMessages(one))).toEqual(withoutRaw(plain(client.chat.messages)));
    await client.chat.addToolApprovalResponse({ id: approvalOf(asked), approved: true });
    await expect.poll(() => textOfMessage(client.chat.lastMessage)).toBe("so: removed a.txt");
    await expect.poll(() => client.chat.status).toBe("ready");
    expect(one.removed).toEqual(["a.txt"]);
    expect(client.chat.messages).toHaveLength(2);
    expect(shapeOf(client.chat.lastMessage)).toEqual([
      "step-start",
      "tool-remove output-available",
      "step-start",
      "text",
    ]);
    expect(withoutRaw(plain(await loadedMessages(one)))).toEqual(withoutRaw(plain(client.chat.messages)));
  });

  it("rejects a call", async () => {
    const one = await served();
    const client = officialClient(one);
    const asked = await client.say("remove");
    await client.chat.addToolApprovalResponse({ id: approvalOf(asked), approved: false, reason: "not today" });
    await expect.poll(() => textOfMessage(client.chat.lastMessage)).toContain("not today");
    expect(shapeOf(client.chat.lastMessage)[1]).toBe("tool-remove output-denied");
    expect(one.removed).toEqual([]);
  });

  it("in two tabs decides once: an equal answer continues there too, another one is refused", async () => {
    const one = await served();
    const first = officialClient(one);
    const asked = await first.say("remove");
    const messages = await loadedMessages(one);
    const [same, other] = [officialClient(one, { messages }), officialClient(one, { messages })];
    await first.chat.addToolApprovalResponse({ id: approvalOf(asked), approved: true });
    await expect.poll(() => textOfMessage(first.chat.lastMessage)).toBe("so: removed a.txt");
    await same.chat.addToolApprovalResponse({ id: approvalOf(asked), approved: true });
    await expect.poll(() => textOfMessage(same.chat.lastMessage)).toBe("so: removed a.txt");
    expect(shapeOf(same.chat.lastMessage)).toEqual(shapeOf(first.chat.lastMessage));
    await other.chat.addToolApprovalResponse({ id: approvalOf(asked), approved: false });
    await expect.poll(() => other.chat.error?.message ?? "").toContain("approved by ann");
    expect(one.removed).toEqual(["a.txt"]);
  });

  it("approves calls of a subagent, which is a part of the message", async () => {
    const one = await served();
    const client = officialClient(one);
    const asked = await client.say("delegate: remove it");
    expect(asked?.parts.find(({ type }) => type === "data-subagent")).toMatchObject({
      data: { name: "reader", status: "running", text: "I remove it." },
    });
    await client.chat.addToolApprovalResponse({ id: approvalOf(asked), approved: true });
    await expect.poll(() => textOfMessage(client.chat.lastMessage)).toBe("so: Read it.");
    expect(one.removed).toEqual(["a.txt"]);
    expect(withoutRaw(plain(await loadedMessages(one)))).toEqual(withoutRaw(plain(client.chat.messages)));
  });

  it("answers a question with addToolOutput", async () => {
    const one = await served();
    const client = officialClient(one);
    const asked = await client.say("ask");
    const part = asked?.parts.find((found) => "toolCallId" in found);
    expect(part).toMatchObject({ state: "input-available", input: { question: "your name?" } });
    const toolCallId = part !== undefined && "toolCallId" in part ? part.toolCallId : "";
    await client.chat.addToolOutput({ tool: "ask_user" as never, toolCallId, output: "Ann" as never });
    await expect.poll(() => textOfMessage(client.chat.lastMessage)).toBe("so: Ann");
  });

  it("runs a tool of the page once", async () => {
    const one = await served();
    const calls: string[] = [];
    const client = officialClient(one, {
      body: { tools: [showTool] },
      onToolCall: ({ toolName, toolCallId }) => {
        calls.push(toolName);
        void client.chat.addToolOutput({ tool: toolName as never, toolCallId, output: "shown" as never });
      },
    });
    await client.say("show");
    await expect.poll(() => textOfMessage(client.chat.lastMessage)).toBe("so: shown");
    expect(calls).toEqual(["show"]);
  });

  it("gets an error for a failed turn, and the next message works", async () => {
    const one = await served();
    const client = officialClient(one);
    await client.say("fail");
    expect([client.chat.status, client.chat.error?.message]).toEqual(["error", "the model is broken"]);
    await client.say("hello");
    expect(textOfMessage(client.chat.lastMessage)).toBe("2: hello");
    expect((await loadedMessages(one))[1]?.metadata).toMatchObject({
      status: "failed",
      message: "the model is broken",
    });
  });

  it("is refused a new message while the turn waits, an edit, and a second answer to a message", async () => {
    const one = await served();
    const client = officialClient(one);
    await client.say("hello");
    const messages = structuredClone(client.chat.messages);
    await client.chat.regenerate();
    expect(client.chat.error?.message).toContain("cannot be generated again");
    const edit = officialClient(one, { messages });
    await edit.chat.sendMessage({ text: "other", messageId: messages[0]?.id ?? "" });
    expect(edit.chat.error?.message).toContain("cannot be edited");
    const next = officialClient(one, { messages });
    await next.say("remove");
    await next.say("hello");
    expect(next.chat.error?.message).toMatch(/busy|open|waits/);
    expect(await one.runtime.turns()).toHaveLength(2);
  });

  it("starts a message that has not arrived before with regenerate, as a page retries", async () => {
    const one = await served();
    const messages: DeskMessage[] = [{ id: "lost", role: "user", parts: [{ type: "text", text: "hello" }] }];
    const client = officialClient(one, { messages });
    await client.chat.regenerate();
    expect(textOfMessage(client.chat.lastMessage)).toBe("1: hello");
  });
});

describe("a running answer", () => {
  async function speaking() {
    const goOn = Promise.withResolvers<void>();
    const said = Promise.withResolvers<void>();
    const { model } = slowSpeaker({ said: said.resolve, goOn: goOn.promise, whole: goOn.promise });
    const runtime = await createRuntime({ agents: [defineAgent({ name: "desk", model })], streaming: "always" });
    onTestFinished(() => runtime.shutdown());
    const one = serve(runtime, { surfaces: [aiSdkSurface()] });
    const client = officialClient(one);
    const whole = client.say("speak");
    await said.promise;
    return { one, client, whole, goOn };
  }

  it("continues after a reload, without gap or duplicate, and in a second tab", async () => {
    const { one, client, whole, goOn } = await speaking();
    const reloaded = officialClient(one, { messages: await loadedMessages(one) });
    const tab = officialClient(one);
    const resumed = [reloaded.chat.resumeStream(), tab.chat.resumeStream()];
    await expect.poll(() => textOfMessage(reloaded.chat.lastMessage)).toBe("The first half, ");
    goOn.resolve();
    await Promise.all([whole, ...resumed]);
    const text = "The first half, and the second.";
    for (const { chat } of [client, reloaded, tab]) expect(textOfMessage(chat.lastMessage)).toBe(text);
    expect(reloaded.chat.messages).toHaveLength(2);
    expect(plain(await loadedMessages(one))).toEqual(plain(reloaded.chat.messages));
    // Nothing runs any more: no stream without the message's id, and the whole answer with it.
    const id = reloaded.chat.lastMessage?.id ?? "";
    expect((await one.ask("/ai-sdk/desk/the%20chat/stream")).status).toBe(204);
    const again = await one.ask(`/ai-sdk/desk/the%20chat/stream?message=${encodeURIComponent(id)}`);
    expect(await again.text()).toMatch(/"finish"[^]*\[DONE\]/);
  });

  it("continues on the server when the page stops reading, and ends by the stop route", async () => {
    const { one, client, whole, goOn } = await speaking();
    await client.chat.stop();
    await whole;
    expect((await loadedMessages(one)).at(-1)?.metadata?.status).toBe("running");
    const tab = officialClient(one);
    const resumed = tab.chat.resumeStream();
    const stop = await one.ask("/ai-sdk/desk/the%20chat/stop", { method: "POST", body: { reason: "enough" } });
    expect(await stop.json()).toEqual({ stopped: true });
    goOn.resolve();
    await resumed;
    expect(tab.chunks.map(({ type }) => type)).toContain("abort");
    expect(tab.chat.lastMessage?.metadata).toMatchObject({ status: "stopped", stopReason: "user_requested" });
    const none = await one.ask("/ai-sdk/desk/the%20chat/stop", { method: "POST" });
    expect(await none.json()).toEqual({ stopped: false });
  });
});

it("a stream of the model that breaks half-way is replaced by that of the next provider", async () => {
  const broken = await startModelServer(() => ({ deltas: ["The first ", "half"], cutAfterChunks: 3 }));
  const sound = await startModelServer(() => ({ deltas: ["The whole ", "answer."] }));
  const model = fallbackModel([
    openaiModel("north-1", { provider: "north", baseURL: broken.baseURL, apiKey: "none" }),
    openaiModel("south-1", { provider: "south", baseURL: sound.baseURL, apiKey: "none" }),
  ]);
  const runtime = await createRuntime({ agents: [defineAgent({ name: "desk", model })], streaming: "always" });
  onTestFinished(async () => {
    await runtime.shutdown();
    await broken.stop();
    await sound.stop();
  });
  const client = officialClient(serve(runtime, { surfaces: [aiSdkSurface()] }));
  expect(textOfMessage(await client.say("write"))).toBe("The whole answer.");
  expect(client.chunks.map(({ type }) => type)).toContain("reset-step");
});
