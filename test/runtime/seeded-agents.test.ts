import { expect, it } from "vitest";
import {
  type Agent,
  type AgentStartOptions,
  createAgent,
  defineAgent,
  InvalidInputError,
  NotFoundError,
  type TroupeEvent,
} from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { textOf } from "../../src/state/index.ts";
import { ownStores } from "../support/own-stores.ts";
import { describeRuntimes } from "../support/runtimes.ts";

const messages = [
  { role: "user", content: "My name is Ada." },
  { role: "assistant", content: "Hello Ada." },
  {
    role: "user",
    content: [
      { type: "text", text: "And this?" },
      { type: "image", url: "https://example.org/a.png" },
    ],
  },
  { role: "assistant", content: [{ type: "text", text: "A square." }] },
] as const;
const said = messages.map(({ role, content }) => [role, textOf(content)]);

function clerk(script: ModelScript = "fine") {
  const model = scriptedModel(script);
  const seen = () => model.calls.map((call) => call.messages.map(({ role, content }) => [role, textOf(content)]));
  return { definition: defineAgent({ name: "clerk", model }), model, seen };
}

async function spoken(agent: Agent): Promise<unknown> {
  return (await agent.getMessages()).map(({ role, content }) => [role, textOf(content)]);
}

const conversationOf = (index: number) => [{ role: "user", content: `of ${index}` } as const, messages[1]];

describeRuntimes("agents created with messages", (stage) => {
  it("have them before they are started, and their model gets them before the first input", async () => {
    const { definition, seen } = clerk();
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent("clerk", { agentId: "c", messages, budget: { maxTokens: 100_000 } });
    expect(agent.state).toMatchObject({ status: "created", turnCount: 0 });
    expect(await spoken(agent)).toEqual(said);
    await agent.start();
    await agent.executeTurn("Who am I?").result;
    expect(seen()).toEqual([[...said, ["user", "Who am I?"]]]);
    expect(await spoken(agent)).toEqual([...said, ["user", "Who am I?"], ["assistant", "fine"]]);
    expect((await agent.getMessages()).map(({ origin }) => origin).slice(0, 3)).toEqual(["user", "model", "user"]);
    const events: TroupeEvent[] = [];
    for await (const event of runtime.follow("c")) {
      events.push(event);
      if (event.type === "turn.completed") break;
    }
    expect(events[0]).toMatchObject({ type: "lifecycle.changed", status: "starting" });
  });

  it("a turn without input answers the last message", async () => {
    const { definition, seen } = clerk();
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent("clerk", { messages: messages.slice(0, 1) });
    await agent.start();
    expect((await agent.executeTurn(null).result).text).toBe("fine");
    expect(seen()).toEqual([said.slice(0, 1)]);
  });

  it("an existing agent is returned unchanged and keeps its own conversation", async () => {
    const { definition } = clerk();
    const runtime = await stage().open({ agents: [definition] });
    await runtime.agent("clerk", { agentId: "bare" });
    expect(await spoken(await runtime.agent("clerk", { agentId: "bare", messages }))).toEqual([]);
    await runtime.agent("clerk", { agentId: "c", messages });
    const again = await runtime.agent("clerk", { agentId: "c", messages: [{ role: "user", content: "other" }] });
    expect(await spoken(again)).toEqual(said);
  });

  it("have them in the next process, whenever the first one died", async () => {
    const first = await stage().openProcess({ agents: [clerk().definition] });
    await first.runtime.agent("clerk", { agentId: "c", messages });
    first.kill();
    stage().expireLeases();
    const { definition, seen } = clerk();
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent("clerk", { agentId: "c", messages });
    expect(await runtime.recover()).toEqual([]);
    await agent.start();
    await agent.executeTurn("go").result;
    expect(seen()).toEqual([[...said, ["user", "go"]]]);
  });

  it("several processes that create the same agent at once all get the messages of one of them", async () => {
    const runtimes = [];
    for (let index = 0; index < 3; index += 1) runtimes.push(await stage().open({ agents: [clerk().definition] }));
    const agents = await Promise.all(
      runtimes.map((runtime, index) => runtime.agent("clerk", { agentId: "c", messages: conversationOf(index) })),
    );
    const all = await Promise.all(agents.map((agent) => agent.getMessages()));
    expect(all[0]).toHaveLength(2);
    for (const one of all) expect(one).toEqual(all[0]);
  });

  it("clear() removes the messages, and nothing adds them again", async () => {
    const { definition, seen } = clerk();
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent("clerk", { agentId: "c", messages });
    await agent.start();
    await agent.clear();
    expect(await agent.getMessages()).toEqual([]);
    const again = await runtime.agent("clerk", { agentId: "c", messages });
    await again.executeTurn("go").result;
    expect(seen()).toEqual([[["user", "go"]]]);
  });

  it("are saved with an unsaved tree", async () => {
    const first = await stage().openProcess({ agents: [clerk().definition] });
    const agent = await first.runtime.agent("clerk", { agentId: "c", messages, autoSave: false });
    expect(await spoken(agent)).toEqual(said);
    await agent.start();
    expect(await stage().look().readAgent({ tenant: "default", agentId: "c" })).toBeUndefined();
    await agent.saveState();
    first.kill();
    stage().expireLeases();
    const { definition, seen } = clerk();
    const runtime = await stage().open({ agents: [definition] });
    const next = await runtime.find("c");
    await next.start();
    await next.executeTurn("go").result;
    expect(seen()).toEqual([[...said, ["user", "go"]]]);
  });

  it("the messages are copied to custom stores", async () => {
    const own = ownStores();
    const runtime = await stage().open({ agents: [clerk().definition], projections: own });
    const agent = await runtime.agent("clerk", { agentId: "c", messages });
    await runtime.projected("c");
    expect(own.messages.of("c")).toEqual(await agent.getMessages());
    await agent.start();
    await agent.executeTurn("go").result;
    await runtime.projected("c");
    expect(own.messages.of("c")).toEqual(await agent.getMessages());
  });

  it("createAgent() accepts them too; an empty list counts as none", async () => {
    const agent = await createAgent({ model: scriptedModel("fine"), messages, agentId: "c" });
    expect(await spoken(agent)).toEqual(said);
    await agent.runtime.shutdown();
    const runtime = await stage().open({ agents: [clerk().definition] });
    const bare = await runtime.agent("clerk", { agentId: "b", messages: [] });
    expect(await bare.getMessages()).toEqual([]);
    expect(await stage().look().readJournal({ tenant: "default", agentId: "b" }, 1)).toEqual([]);
  });

  const image = { type: "image", url: "https://example.org/a.png" };
  it.each<[string, unknown, RegExp]>([
    ["another role", [{ role: "system", content: "x" }], /\[0\]\.role/],
    ["a tool's result", [{ role: "tool", content: "x", callId: "a" }], /\[0\]/],
    ["no content", [messages[0], { role: "user" }], /\[1\]\.content/],
    ["null as content", [{ role: "user", content: null }], /\[0\]\.content/],
    ["an empty list of parts", [{ role: "user", content: [] }], /\[0\].*empty/],
    [
      "an image with an invalid URL",
      [{ role: "user", content: [{ ...image, url: "file:///a" }] }],
      /\[0\]: content part 0/,
    ],
    ["an image in an assistant message", [{ role: "assistant", content: [image] }], /\[0\].*cannot contain images/],
    ["an unknown field", [{ role: "user", content: "x", id: "turn#1:in" }], /id/],
    ["tool calls", [{ role: "assistant", content: "", toolCalls: [] }], /toolCalls/],
    ["an object instead of a list", { role: "user", content: "x" }, /messages/],
    ["a text", "hello", /messages/],
    ["too many messages", Array.from({ length: 10_001 }, () => ({ role: "user", content: "x" })), /10000/],
    ["too much data", [{ role: "user", content: "x".repeat(2 ** 26 + 1) }], /cannot be taken/],
  ])("the messages are validated before anything is stored: %s", async (_what, given, why) => {
    const runtime = await stage().open({ agents: [clerk().definition] });
    const options = { agentId: "c", messages: given } as AgentStartOptions;
    const refusal = await runtime.agent("clerk", options).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(InvalidInputError);
    expect((refusal as Error).message).toMatch(why);
    await expect(runtime.find("c")).rejects.toThrow(NotFoundError);
  });
});
