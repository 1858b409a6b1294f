// Turns that a tool or a subagent ends, in the official client of the AI SDK: live and after a reload it shows the same messages.
import { type AgentOptions, createRuntime, defineAgent } from "troupe";
import { aiSdkSurface } from "troupe/server";
import { scriptedModel } from "troupe/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { showTool } from "../ag-ui/ag-ui-served.ts";
import { serveHandover } from "../handover-desk.ts";
import { serve } from "../served.ts";
import {
  type DeskMessage,
  loadedMessages,
  officialClient,
  type OfficialClient,
  textOfMessage,
} from "./official-client.ts";

const served = () => serveHandover(aiSdkSurface());

/** What both have of a message. The client keeps the JSON text of arguments only of a call that it saw while it was written. */
function shown(messages: readonly DeskMessage[]): unknown {
  const text = JSON.stringify(
    messages.map(({ id, role, parts }) => ({ ...(role === "user" ? {} : { id }), role, parts })),
    (name, value: unknown) => (name === "rawInput" ? undefined : value),
  );
  return JSON.parse(text);
}

function approvalOf({ chat }: OfficialClient): string {
  const ids = (chat.lastMessage?.parts ?? []).flatMap((part) => ("approval" in part ? (part.approval?.id ?? []) : []));
  return ids.at(-1) ?? "";
}

describe.each([
  ["look", "It is in shelf 7."],
  ["hand over", "Ask the librarian."],
  ["both", "Let me see.|It is in shelf 7."],
])("%s", (said, text) => {
  it("is answered with a text once, live and after a reload, and the conversation goes on", async () => {
    const one = await served();
    const client = officialClient(one);
    expect(textOfMessage(await client.say(said))).toBe(text);
    expect(client.chat.lastMessage?.metadata?.status).toBe("completed");
    expect(shown(await loadedMessages(one))).toEqual(shown(client.chat.messages));
    const reloaded = officialClient(one, { messages: await loadedMessages(one) });
    await reloaded.say("thanks");
    expect(textOfMessage(reloaded.chat.lastMessage)).toBe("You said: thanks");
    expect(shown(await loadedMessages(one))).toEqual(shown(reloaded.chat.messages));
    expect([client.requests(), reloaded.requests()]).toEqual([1, 1]);
  });
});

describe.each(["remove", "hand over to remove"])("%s", (said) => {
  it.each(["in the same page", "after a reload", "in a second tab too"])(
    "is answered with the result once it is approved, %s",
    async (where) => {
      const one = await served();
      const first = officialClient(one);
      await first.say(said);
      const client = where === "after a reload" ? officialClient(one, { messages: await loadedMessages(one) }) : first;
      const tab = officialClient(one, { messages: await loadedMessages(one) });
      await client.chat.addToolApprovalResponse({ id: approvalOf(client), approved: true });
      const answer = "It is removed.";
      await expect.poll(() => client.chat.lastMessage?.metadata?.status).toBe("completed");
      await expect.poll(() => client.chat.status).toBe("ready");
      expect(textOfMessage(client.chat.lastMessage)).toBe(answer);
      expect(shown(await loadedMessages(one))).toEqual(shown(client.chat.messages));
      if (where !== "in a second tab too") return;
      await tab.chat.addToolApprovalResponse({ id: approvalOf(tab), approved: true });
      await expect.poll(() => tab.chat.lastMessage?.metadata?.status).toBe("completed");
      expect(textOfMessage(tab.chat.lastMessage)).toBe(answer);
      expect((await one.runtime.turns()).length).toBe(1);
    },
  );
});

it("a rejected call goes back to the model, which answers itself", async () => {
  const one = await served();
  const client = officialClient(one);
  await client.say("remove");
  await client.chat.addToolApprovalResponse({ id: approvalOf(client), approved: false });
  await expect.poll(() => textOfMessage(client.chat.lastMessage)).toBe("Once more.");
  await expect.poll(() => client.chat.status).toBe("ready");
  expect(shown(await loadedMessages(one))).toEqual(shown(client.chat.messages));
});

it("a tool of the page beside it gets its result first, and the page does not send the message again", async () => {
  const one = await served();
  const client: OfficialClient = officialClient(one, {
    body: { tools: [showTool] },
    onToolCall: ({ toolName, toolCallId }) => {
      void client.chat.addToolOutput({ tool: toolName as never, toolCallId, output: "shown" as never });
    },
  });
  await client.say("show and look");
  await expect.poll(() => client.chat.lastMessage?.metadata?.status).toBe("completed");
  await expect.poll(() => client.chat.status).toBe("ready");
  expect(textOfMessage(client.chat.lastMessage)).toBe("It is in shelf 7.");
  await client.say("thanks");
  expect(client.requests()).toBe(3);
  expect((await loadedMessages(one)).map(textOfMessage)).toEqual(client.chat.messages.map(textOfMessage));
});

it.each<[string, Partial<AgentOptions>, RegExp]>([
  ["a limit", { budget: { maxSteps: 1 } }, /1 of 1 steps/],
  ["a hook", { hooks: { afterTools: (draft) => draft.stop("enough") } }, /enough/],
])("a turn that %s ends after the result of a tool of the page is not sent again by the page", async (_, more, why) => {
  const model = scriptedModel([{ toolCalls: [{ name: "show", arguments: { what: "a map" } }] }, "second"]);
  const desk = defineAgent({ name: "desk", model, clientTools: true, ...more });
  const runtime = await createRuntime({ agents: [desk] });
  onTestFinished(() => runtime.shutdown());
  const one = serve(runtime, { surfaces: [aiSdkSurface()] });
  const client: OfficialClient = officialClient(one, {
    body: { tools: [showTool] },
    onToolCall: ({ toolName, toolCallId }) => {
      void client.chat.addToolOutput({ tool: toolName as never, toolCallId, output: "shown" as never });
    },
  });
  await client.say("show");
  await expect.poll(() => client.chat.lastMessage?.metadata?.status).toMatch(/stopped|completed/);
  await expect.poll(() => client.chat.status).toBe("ready");
  expect(client.chat.lastMessage?.metadata?.message).toMatch(why);
  await client.say("thanks");
  expect(client.requests()).toBe(3);
});
