// Deletions whose process is killed between any two steps, and deletions under the hands of a living owner.
import { expect, it, onTestFinished } from "vitest";
import { armFaultPoints } from "../../src/base/index.ts";
import {
  AgentBusyError,
  AgentDeletedError,
  createRuntime,
  defineAgent,
  InvalidInputError,
  subagent,
} from "../../src/index.ts";
import { fork, scriptedModel } from "../../src/testing/index.ts";
import { OwnMessages } from "../support/own-stores.ts";
import { describeRuntimes, type Stage, type StagedProcess } from "../support/runtimes.ts";
import { createGate } from "../support/turn-probes.ts";

const canary = "canary-3a9f1e";
const id = `desk-${canary}`;
const steps = ["deletion.begun", "tree.deleted", "copies.deleted", "data.forgotten", "deletion.finished"] as const;

function clerk() {
  const reader = defineAgent({ name: "reader", model: scriptedModel(`read ${canary}`) });
  const model = scriptedModel((_request, { call }) =>
    call?.step === 1 ? { toolCalls: [{ name: "reader", arguments: { input: canary } }] } : `done ${canary}`,
  );
  return defineAgent({ name: "clerk", model, tools: [subagent(reader, { description: "Reads." })] });
}

async function played(stage: Stage, messages?: OwnMessages): Promise<StagedProcess> {
  const staged = await stage.openProcess({ agents: [clerk()], ...(messages && { projections: { messages } }) });
  const agent = await staged.runtime.agent("clerk", { agentId: id, ownerId: `ann ${canary}` });
  await agent.start();
  await agent.executeTurn(canary).result;
  if (messages) await staged.runtime.projected(id);
  await agent.shutdown();
  return staged;
}

describeRuntimes("a deletion whose process dies", (stage) => {
  it.each(steps)("after %s it is finished by repeating it, and nothing is half there in between", async (step) => {
    const messages = new OwnMessages();
    const first = await played(stage(), messages);
    const { rows: before } = (await stage().look().exportTree("default", id)) ?? { rows: [] };
    expect(before.length).toBeGreaterThan(3);
    const die = (): never => {
      first.kill();
      throw new Error("killed");
    };
    onTestFinished(armFaultPoints([{ name: step, hit: 1, action: die }]));
    await expect(first.runtime.delete(id)).rejects.toThrow("killed");

    const second = await stage().open({ agents: [clerk()], projections: { messages } });
    const { rows } = (await second.stores.exportTree("default", id)) ?? { rows: before };
    expect(rows).toEqual(before);
    const found = await second.find(id).catch((error: unknown) => error);
    expect(found instanceof AgentDeletedError).toBe(step !== "deletion.begun");
    const report = await second.deleteOwner(`ann ${canary}`);
    expect(report.failed).toEqual([]);
    await second.delete(id);
    expect(await second.stores.deletions({ tenant: "default", isPending: true })).toEqual([]);
    expect(await second.stores.deletions({ tenant: "default" })).toMatchObject([{ counts: { agents: 2, turns: 1 } }]);
    expect(messages.of(id)).toEqual([]);
    expect(await stage().present()).not.toContain(canary);
  });

  it("a tree of an owner that was not reached is deleted by the next call", async () => {
    const { runtime } = await played(stage());
    for (const agentId of ["a", "b"]) await runtime.agent("clerk", { agentId, ownerId: `ann ${canary}` });
    await runtime.agent("clerk", { agentId: "other", ownerId: "ben" });
    const report = await runtime.deleteOwner(`ann ${canary}`, { by: "support" });
    expect(report.trees.map(({ agentId }) => agentId).toSorted()).toEqual(["a", "b", id].toSorted());
    expect(report).toMatchObject({ failed: [], forks: [] });
    expect(await runtime.deleteOwner(`ann ${canary}`)).toMatchObject({ trees: [], failed: [] });
    expect((await runtime.list({ rootsOnly: true })).map(({ agentId }) => agentId)).toEqual(["other"]);
    expect(await stage().present()).not.toContain(canary);
  });
});

describeRuntimes("a deletion while another process owns the agent", (stage) => {
  it("fences its late commit off, and nothing comes back", async () => {
    const gate = createGate<string>();
    const desk = defineAgent({ name: "desk", model: scriptedModel((_request, { signal }) => gate.pass(signal)) });
    const staged = await stage().openProcess({ agents: [desk] });
    const owner = staged.runtime;
    const agent = await owner.agent("desk", { agentId: id, metadata: { canary } });
    await agent.start();
    const turn = agent.executeTurn(canary);
    await gate.reached();

    const other = await stage().open({ agents: [desk], recovers: "own" });
    await expect(other.delete(id)).rejects.toThrow(AgentBusyError);
    // The owner is stopped in the middle of its model call, and its answer arrives after the deletion.
    staged.freeze();
    gate.open(`late ${canary}`);
    const { trees } = await other.delete(id, { abort: true, timeoutMs: 0 });
    expect(trees).toMatchObject([{ agentId: id, wasDeleted: false }]);
    const ended = turn.result.catch((error: unknown) => error);
    staged.thaw();
    stage().expireLeases();
    expect(await ended).toBeInstanceOf(AgentDeletedError);
    await expect(owner.agent("desk", { agentId: id })).rejects.toThrow(AgentDeletedError);
    await expect(agent.executeTurn("more").result).rejects.toThrow(AgentDeletedError);
    expect(await other.list()).toEqual([]);
    expect(await other.stores.accounts("default", id)).toEqual([]);
    await other.delete(id);
    expect(await stage().present()).not.toContain(canary);
  });

  it("the process that owns it at rest drops it from its memory with its next heartbeat", async () => {
    const owner = await stage().open({ agents: [clerk()] });
    const { overview } = owner;
    const agent = await owner.agent("clerk", { agentId: id });
    await agent.start();
    await agent.executeTurn(canary).result;
    expect(overview.agent(id).get()).toBeDefined();
    const forgotten = Promise.withResolvers<void>();
    overview.agent(id).subscribe((shown) => (shown === undefined ? forgotten.resolve() : undefined));
    const other = await stage().open({ agents: [clerk()], recovers: "own" });
    await other.delete(id);
    stage().expireLeases();
    await forgotten.promise;
    expect(overview.agent(`${id}~`).get()).toBeUndefined();
  });

  it("an open turn is aborted and has ended before the tree is deleted", async () => {
    const gate = createGate<string>();
    const desk = defineAgent({ name: "desk", model: scriptedModel((_request, { signal }) => gate.pass(signal)) });
    const owner = await stage().open({ agents: [desk] });
    const agent = await owner.agent("desk", { agentId: id });
    await agent.start();
    const turn = agent.executeTurn("go");
    await gate.reached();
    const [{ trees }, result] = await Promise.all([owner.delete(id, { abort: true }), turn.result]);
    expect(result).toMatchObject({ status: "stopped", stopReason: "user_requested" });
    expect(trees).toMatchObject([{ counts: { agents: 1, turns: 1 } }]);
  });
});

describeRuntimes("what can be deleted", (stage) => {
  it("a subagent cannot; the error names its root", async () => {
    const { runtime } = await played(stage());
    const [child] = (await runtime.list()).filter(({ parentAgentId }) => parentAgentId !== null);
    await expect(runtime.delete(child?.agentId ?? "")).rejects.toThrow(`delete "${id}"`);
    await expect(runtime.delete(child?.agentId ?? "")).rejects.toThrow(InvalidInputError);
  });

  it("an agent with autoSave: false, saved or not, of which nothing is saved later", async () => {
    const runtime = await stage().open({ agents: [clerk()] });
    for (const agentId of ["saved", "unsaved"]) {
      const agent = await runtime.agent("clerk", { agentId, autoSave: false });
      await agent.start();
      await agent.executeTurn(canary).result;
      if (agentId === "saved") await agent.saveState();
      await runtime.delete(agentId);
      await agent.saveState();
      expect(await stage().look().readAgent({ tenant: "default", agentId })).toBeUndefined();
      await expect(runtime.agent("clerk", { agentId, autoSave: false })).rejects.toThrow(AgentDeletedError);
    }
    expect(await stage().present()).not.toContain(canary);
  });

  it("forks are named, also those of forks, and deleted on request", async () => {
    const desk = defineAgent({ name: "desk", model: scriptedModel(() => `done ${canary}`) });
    const runtime = await stage().open({ agents: [desk] });
    const agent = await runtime.agent("desk", { agentId: "origin" });
    await agent.start();
    await agent.executeTurn(canary).result;
    const forks: string[] = [];
    for (const from of ["origin", "fork"]) {
      const agentId = from === "origin" ? "origin" : (forks[0] ?? "");
      const made = await fork({ stores: runtime.stores, agentId }, { at: { turn: 1 }, runtime, input: "go on" });
      await made.turn.result;
      forks.push(made.agent.agentId);
    }
    const [first = "", second = ""] = forks;
    const reported = await runtime.delete("origin");
    expect(reported.forks.toSorted()).toEqual(forks.toSorted());
    const { trees, forks: left } = await runtime.delete(first, { forks: true });
    expect(trees.map(({ agentId }) => agentId)).toEqual([first, second]);
    expect(left).toEqual([]);
    expect(await stage().present()).not.toContain(canary);
  });

  it("two deletions at once leave one line", async () => {
    const { runtime } = await played(stage());
    const other = await stage().open({ agents: [clerk()] });
    await Promise.all([runtime.delete(id), other.delete(id), runtime.deleteOwner(`ann ${canary}`)]);
    expect(await other.stores.deletions({ tenant: "default" })).toMatchObject([{ counts: { agents: 2, turns: 1 } }]);
    expect(await other.stores.deletions({ tenant: "default", isPending: true })).toEqual([]);
    expect(await stage().present()).not.toContain(canary);
  });

  it("stores of the user's own are asked to delete, and the report names those that cannot", async () => {
    const deleted: string[] = [];
    const messages = Object.assign(new OwnMessages(), {
      delete: async (agentId: string) => void deleted.push(agentId),
    });
    const state = { save: async () => undefined, load: async () => undefined };
    const runtime = await stage().open({ agents: [clerk()], projections: { messages, state } });
    const agent = await runtime.agent("clerk", { agentId: "kept" });
    await agent.start();
    await agent.executeTurn("go").result;
    const { copiesLeft } = await runtime.delete("kept");
    expect(copiesLeft).toEqual(["state"]);
    expect(deleted).toHaveLength(2);
    expect(deleted[0]).toBe("kept");
  });
});

it.each([
  [{ abort: "yes" }, "abort"],
  [{ forks: 1 }, "forks"],
  [{ by: "" }, "by"],
  [{ timeoutMs: -1 }, "timeoutMs"],
  [{ timeoutMs: "1s" }, "timeoutMs"],
  [{ aborts: true }, "did you mean abort?"],
  [7, "delete()"],
])("wrong options %j are refused, and nothing is deleted", async (wrong, named) => {
  const runtime = await createRuntime({ agents: [clerk()] });
  await runtime.agent("clerk", { agentId: "kept", ownerId: "ann" });
  await expect(runtime.delete("kept", wrong as never)).rejects.toThrow(named);
  await expect(runtime.deleteOwner("ann", wrong as never)).rejects.toThrow(InvalidInputError);
  for (const id of [7, null]) {
    await expect(runtime.delete(id as never)).rejects.toThrow(InvalidInputError);
    await expect(runtime.deleteOwner(id as never)).rejects.toThrow(InvalidInputError);
  }
  expect(await runtime.list()).toHaveLength(1);
  await runtime.shutdown();
});
