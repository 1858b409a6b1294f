import { expect, it } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool, dropOldest, type Runtime } from "../../src/index.ts";
import { viewOf } from "../../src/context/index.ts";
import type { AgentRecord, Entry } from "../../src/state/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { scenarios } from "../machines/scenarios.ts";
import { every, rows } from "../support/full.ts";
import { entriesOf } from "../support/journal-probes.ts";
import { OwnMessages, ownStores } from "../support/own-stores.ts";
import { describeRuntimes, type Stage } from "../support/runtimes.ts";
import { calling } from "../support/turn-probes.ts";

type Own = ReturnType<typeof ownStores>;

/** Passes these stores to every process of the stage. */
function withProjections(stage: Stage, projections: Own): Stage {
  return {
    ...bound(stage),
    open: (options) => stage.open({ ...options, projections }),
    openProcess: (options) => stage.openProcess({ ...options, projections }),
  };
}

function bound(stage: Stage): Stage {
  const { variant, clock, folder } = stage;
  return {
    variant,
    clock,
    folder,
    open: (options) => stage.open(options),
    openProcess: (options) => stage.openProcess(options),
    stored: () => stage.stored(),
    expireLeases: () => stage.expireLeases(),
    committed: (agent) => stage.committed(agent),
    look: () => stage.look(),
    present: () => stage.present(),
  };
}

/** Ids of the messages that a copy must contain: since the last clear(), what the model sees first. */
async function expectedIds(runtime: Runtime, { agentId }: AgentRecord): Promise<string[]> {
  const entries = await entriesOf(runtime.stores, agentId);
  const cleared = entries.findLastIndex(({ type }) => type === "conversation.cleared");
  const compaction = entries
    .slice(cleared + 1)
    .findLast((entry): entry is Extract<Entry, { type: "context.compacted" }> => entry.type === "context.compacted");
  const messages = await runtime.stores.messages({ tenant: "default", agentId });
  return viewOf(messages, compaction ?? null).map(({ id }) => id);
}

describeRuntimes(
  "L11: custom stores contain what the journal contains",
  (stage) => {
    it.each(rows(scenarios, every(3)))("$name", async ({ run }) => {
      const own = ownStores();
      const runtime = await run(withProjections(stage(), own), {});
      await runtime.projected("desk");
      const agents = await runtime.list();
      expect(own.messages.idsOf("desk").length).toBeGreaterThan(0);
      for (const record of agents) {
        const { agentId, createdAt, lastActivity, turnCount, status } = record;
        const key = { tenant: "default", agentId };
        expect(own.messages.idsOf(agentId), agentId).toEqual(await expectedIds(runtime, record));
        const stored = await runtime.stores.messagesById(key, own.messages.idsOf(agentId));
        expect(own.messages.of(agentId)).toEqual(stored);
        expect(await own.artifacts.list(agentId)).toEqual(await runtime.stores.artifacts(key));
        expect(await own.state.load(agentId)).toEqual({
          agentId,
          createdAt: new Date(createdAt).toISOString(),
          lastActivity: new Date(lastActivity).toISOString(),
          turnCount,
          status,
        });
      }
    });
  },
  ["memory", "sqlite, restored"],
);

const save = defineTool({
  name: "save",
  description: "Saves.",
  parameters: z.object({ text: z.string() }),
  effect: "keyed",
  execute: async ({ text }, run) =>
    await run.saveArtifact({ name: "report", contentType: "text/plain", content: text }),
});

describeRuntimes("projections", (stage) => {
  it("contain every turn, every version of an artifact, and the effect of clear()", async () => {
    const own = ownStores();
    const model = scriptedModel([
      calling({ name: "save", arguments: { text: "one" } }, { name: "save", arguments: { text: "two" } }),
      "saved",
      "again",
      calling({ name: "save", arguments: { text: "anew" } }),
      "saved anew",
    ]);
    const agents = [defineAgent({ name: "desk", model, tools: [save] })];
    const runtime = await stage().open({ agents, projections: own });
    const agent = await runtime.agent("desk", { agentId: "p", metadata: { room: "blue" } });
    await agent.start();
    await agent.executeTurn("go").result;
    await runtime.projected("p");
    expect(own.messages.of("p")).toEqual(await agent.getMessages());
    expect(own.artifacts.of("p").map(({ name, version, content }) => [name, version, content])).toEqual([
      ["report", 1, "one"],
      ["report", 2, "two"],
    ]);
    expect(await own.state.load("p")).toMatchObject({ status: "ready", turnCount: 1, metadata: { room: "blue" } });

    await agent.resetConversation();
    await runtime.projected("p");
    expect(own.messages.of("p")).toEqual([]);
    expect(own.artifacts.of("p")).toHaveLength(2);
    await agent.executeTurn("more").result;
    await agent.clear();
    await agent.executeTurn("anew").result;
    await runtime.projected("p");
    expect(own.messages.of("p")).toEqual(await agent.getMessages());
    expect(own.artifacts.of("p")).toMatchObject([{ name: "report", version: 1, content: "anew" }]);
    expect(await own.state.load("p")).toMatchObject({ turnCount: 3 });
  });

  it("L10: a compaction of the agent's context also compacts the message store", async () => {
    const own = ownStores();
    const model = scriptedModel(({ messages }) => `I see ${messages.length}`);
    const definition = defineAgent({
      name: "desk",
      model,
      maxMessages: 4,
      autoCompact: { strategy: dropOldest({ keep: 2 }) },
    });
    const runtime = await stage().open({ agents: [definition], projections: own });
    const agent = await runtime.agent("desk", { agentId: "p" });
    await agent.start();
    for (const question of ["one", "two", "three", "four"]) await agent.executeTurn(question).result;
    await runtime.projected("p");
    const all = (await agent.getMessages()).map(({ id }) => id);
    const left = own.messages.idsOf("p");
    expect(left.length).toBeLessThan(all.length);
    expect(left).toEqual(all.slice(-left.length));
  });

  it("a store with a new name is filled from the beginning; with its old name it continues", async () => {
    const model = scriptedModel(({ messages }) => `I see ${messages.length}`);
    const agents = [defineAgent({ name: "desk", model })];
    const turn = async (messages: OwnMessages, question: string) => {
      const runtime = await stage().open({ agents, projections: { messages } });
      const agent = await runtime.agent("desk", { agentId: "p" });
      await agent.start();
      await agent.executeTurn(question).result;
      await runtime.projected("p");
      await runtime.shutdown();
    };
    await turn(new OwnMessages(), "one");
    const same = new OwnMessages();
    await turn(same, "two");
    expect(same.of("p").map(({ content }) => content)).toEqual(["two", "I see 3"]);
    const renamed = new OwnMessages(undefined, "archive");
    await turn(renamed, "three");
    expect(renamed.of("p")).toHaveLength(6);
  });

  it("projected() resolves without projections and for an unknown tree", async () => {
    const agents = [defineAgent({ name: "desk", model: scriptedModel("done") })];
    const plain = await stage().open({ agents });
    await expect(plain.projected("nobody")).resolves.toBeUndefined();
    const runtime = await stage().open({ agents, projections: ownStores() });
    await expect(runtime.projected("nobody")).resolves.toBeUndefined();
  });
});
