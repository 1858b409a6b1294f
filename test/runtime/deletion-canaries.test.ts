// Canaries in every place of a tree: after the deletion no byte of the stores has one.
import { inspect } from "node:util";
import { expect, it } from "vitest";
import { z } from "zod";
import {
  AgentDeletedError,
  type AgentDefinition,
  defineAgent,
  defineTool,
  NotFoundError,
  subagent,
  toolResult,
} from "../../src/index.ts";
import { turnIdOf } from "../../src/state/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { OwnMessages } from "../support/own-stores.ts";
import { describeRuntimes, type Stage } from "../support/runtimes.ts";

const canary = "canary-77d0c4";
/** A text that is longer than a page of a database. */
const long = `${canary} `.repeat(900);
const id = `desk-${canary}`;

/** A team that gets a canary into every kind of record. */
function team(): AgentDefinition {
  const look = defineTool({
    name: "look",
    description: `Looks ${canary}.`,
    parameters: z.object({ at: z.string() }),
    execute: ({ at }) => toolResult({ content: [{ type: "text", text: `${long}${at}` }], structured: { at } }),
  });
  const save = defineTool({
    name: "save",
    description: "Saves.",
    parameters: z.object({}),
    effect: "keyed",
    async execute(_args, run) {
      await run.saveArtifact({ name: `${canary}.txt`, content: long, contentType: "text/plain" });
      await run.note({ [canary]: long });
      return "saved";
    },
  });
  const fail = defineTool({
    name: "fail",
    description: "Fails.",
    parameters: z.object({}),
    execute: () => {
      throw new Error(`broken ${canary}`);
    },
  });
  const pay = defineTool({
    name: "pay",
    description: "Pays.",
    parameters: z.object({ to: z.string() }),
    effect: "once",
    needsApproval: true,
    execute: ({ to }) => `paid ${to}`,
  });
  const reader = defineAgent({
    name: "reader",
    instructions: `Read ${canary}.`,
    model: scriptedModel(() => `read ${long}`),
  });
  const steps = [
    { toolCalls: [{ name: "look", arguments: { at: long } }] },
    {
      toolCalls: [
        { name: "save", arguments: {} },
        { name: "fail", arguments: {} },
      ],
    },
    { toolCalls: [{ name: "reader", arguments: { input: long } }] },
    { toolCalls: [{ name: "pay", arguments: { to: canary } }] },
  ];
  return defineAgent({
    name: "clerk",
    instructions: `Serve ${canary}.`,
    model: scriptedModel((_request, { call }) => steps[(call?.step ?? 1) - 1] ?? `done ${long}`),
    tools: [look, save, fail, pay, subagent(reader, { description: "Reads." })],
    budget: { maxTokens: 500_000 },
  });
}

/** A whole life of an agent, at the end of which a turn waits for an approval. Returns what the stores said meanwhile. */
async function play(stage: Stage, messages: OwnMessages) {
  const runtime = await stage.open({ agents: [team()], projections: { messages } });
  const agent = await runtime.agent("clerk", {
    agentId: id,
    ownerId: `ann ${canary}`,
    sessionId: `session ${canary}`,
    metadata: { note: long },
    messages: [{ role: "user", content: `before ${canary}` }],
  });
  await agent.start();
  const turn = agent.executeTurn(long, { key: `key-${canary}`, auth: { actorId: `ann ${canary}` } });
  await turn.settled;
  const [request] = await runtime.requests();
  await agent.decide(request?.requestId ?? "", { verdict: "rejected", by: `ann ${canary}`, reason: `no ${canary}` });
  await turn.result;
  const second = agent.executeTurn(`again ${canary}`);
  await second.settled;
  const now = stage.clock.now();
  const webhook = { surface: "a2a", turnId: turnIdOf(id, 2), name: canary, ownerId: canary, url: `https://${canary}/` };
  const more = {
    sealed: canary,
    details: { canary },
    createdAt: now,
    cursor: 0,
    told: null,
    failures: 0,
    retryAt: null,
  };
  const hooks = { tenant: "default", rootAgentId: id, revision: "1", dueAt: now, claim: null };
  expect(await runtime.stores.putWebhooks({ ...hooks, webhooks: [{ ...webhook, ...more }] }, null)).toBe(true);
  await runtime.projected(id);
  return { runtime, agent, second };
}

describeRuntimes("every byte of a deleted tree", (stage) => {
  it("is gone with the accounts of a deleted owner; the tenant keeps what was used", async () => {
    const name = `ann ${canary}`;
    const limits = { perDay: { maxTokens: 900_000 }, total: { maxTokens: 900_000 } };
    const clerk = defineAgent({ name: "clerk", model: scriptedModel(() => "done"), maxOutputTokens: 100 });
    const runtime = await stage().open({ agents: [clerk], accounts: { owner: limits, tenant: limits } });
    const agent = await runtime.agent("clerk", { ownerId: name });
    await agent.start();
    await agent.executeTurn("go").result;
    const [before] = (await runtime.accountsAbove()).filter(({ outer }) => outer?.scope === "tenant");
    await runtime.deleteOwner(name);
    expect((await runtime.accountsAbove()).map(({ id: accountId }) => accountId)).toEqual([
      "tenant:perDay",
      "tenant:total",
    ]);
    expect((await runtime.accountsAbove())[0]?.used).toEqual(before?.used);
    expect(await stage().present()).not.toContain(canary);
  });

  it("is gone from the stores, from the copies and from the memory of the process", async () => {
    const messages = new OwnMessages();
    const { runtime, agent, second } = await play(stage(), messages);
    expect(await agent.getArtifacts()).not.toEqual([]);
    const events = runtime.follow(id);
    const followed = (async () => {
      for await (const event of events) void event;
    })();
    followed.catch(() => undefined);
    const { overview } = runtime;
    const isInMemory = stage().variant.startsWith("memory");
    expect((await stage().present()).includes(canary)).toBe(!isInMemory);
    expect(messages.of(id)).not.toEqual([]);

    await expect(runtime.delete(id)).rejects.toThrow("delete with { abort: true }");
    const ended = second.result.catch((error: unknown) => error);
    const report = await runtime.delete(id, { abort: true });
    expect(report).toMatchObject({
      trees: [{ agentId: id, wasDeleted: false, counts: { agents: 3, turns: 2, requests: 2 } }],
      forks: [],
      copiesLeft: [],
    });
    await ended;
    await expect(followed).rejects.toThrow(AgentDeletedError);
    expect(messages.of(id)).toEqual([]);

    // Nothing comes back, and every caller gets an error that names the deletion.
    await expect(runtime.find(id)).rejects.toThrow(AgentDeletedError);
    await expect(agent.executeTurn("late").result).rejects.toThrow(AgentDeletedError);
    await expect(runtime.agent("clerk", { agentId: id })).rejects.toThrow(AgentDeletedError);
    expect(await runtime.list()).toEqual([]);
    expect(await runtime.turns()).toEqual([]);
    expect(inspect(overview.getSnapshot(), { depth: 20 })).not.toContain(canary);
    expect(await stage().present()).not.toContain(canary);
    const all = await runtime.stores.deletions({ tenant: "default" });
    expect(all).toMatchObject([{ by: "user", reason: "request", counts: { agents: 3, turns: 2 } }]);
    expect(JSON.stringify(all)).not.toContain(canary);

    // It can be repeated, and an unknown id is unknown.
    expect(await runtime.delete(id)).toMatchObject({ trees: [{ wasDeleted: true }] });
    await expect(runtime.delete("unknown")).rejects.toThrow(NotFoundError);
    expect(await stage().present()).not.toContain(canary);
    expect(inspect(runtime.stores, { depth: 30 })).not.toContain(canary);
  });
});
