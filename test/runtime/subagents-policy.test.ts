import { expect, it } from "vitest";
import { z } from "zod";
import {
  type Agent,
  type AgentDefinition,
  defineAgent,
  defineTool,
  PolicyRefusedError,
  subagent,
  textOf,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { entriesOfType, toolTextsOf } from "../support/journal-probes.ts";
import { asks, leadScript, reader } from "../support/leads.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling } from "../support/turn-probes.ts";

/** An agent that calls the agent below and repeats its answer. */
const pass = (name: string, below: AgentDefinition, maxDepth?: number) =>
  defineAgent({
    name,
    model: scriptedModel(({ messages }) => {
      const last = messages.at(-1);
      return last?.role === "tool" ? textOf(last.content) : calling(asks(below.name, "deeper"));
    }),
    tools: [subagent(below, maxDepth === undefined ? {} : { policy: { maxDepth } })],
  });

describeRuntimes("policies of subagents", (stage) => {
  async function started(lead: AgentDefinition, others: readonly AgentDefinition[] = []) {
    const runtime = await stage().open({ agents: [lead, ...others] });
    const agent = await runtime.agent(lead.name, { agentId: "root-1", sessionId: "desk", ownerId: "mia" });
    await agent.start();
    return { runtime, agent };
  }

  it("subagents nest as deep as the policy allows; one level more is refused with an error for the model", async () => {
    const leaf = defineAgent({ name: "d", model: scriptedModel("never") });
    const third = defineAgent({
      name: "c",
      model: scriptedModel(({ messages }) => {
        const last = messages.at(-1);
        return last?.role === "tool" ? textOf(last.content) : calling(asks("d", "deeper"));
      }),
      tools: [subagent(leaf)],
    });
    const lead = pass("a", pass("b", third), 2);
    const { runtime, agent } = await started(lead);
    const result = await agent.executeTurn("go").result;
    expect(result.text).toBe("A subagent here would be at depth 3; the policy allows 2.");
    const depths = (await runtime.list({ rootAgentId: "root-1" })).map(({ depth }) => depth);
    expect(depths.toSorted((a, b) => a - b)).toEqual([0, 1, 2]);
  });

  it("maxChildren applies to parallel calls too, and refused calls get an error for the model", async () => {
    const lead = defineAgent({
      name: "lead",
      model: scriptedModel(leadScript(["a", "b", "c", "d"].map((input) => asks("reader", input)))),
      tools: [subagent(reader(), { policy: { maxChildren: 2 } })],
    });
    const { runtime, agent } = await started(lead);
    const result = await agent.executeTurn("go").result;
    expect(await runtime.list({ rootAgentId: "root-1" })).toHaveLength(3);
    expect((await toolTextsOf(agent)).toSorted()).toEqual([
      'This turn has started 2 subagents "reader"; the policy allows 2.',
      'This turn has started 2 subagents "reader"; the policy allows 2.',
      "read: a",
      "read: b",
    ]);
    expect(result.errors.map(({ code }) => code)).toEqual(["policy_refused", "policy_refused"]);
    // A new turn may start as many again.
    expect((await agent.executeTurn("again").result).status).toBe("completed");
    expect(await runtime.list({ rootAgentId: "root-1" })).toHaveLength(5);
  });

  it("S14: a child can neither use a tool that its policy denies nor grant it to its own children", async () => {
    const ran: string[] = [];
    const toolNamed = (name: string) =>
      defineTool({
        name,
        description: `Runs ${name}.`,
        parameters: z.object({}),
        effect: "none",
        execute(_args, { agent }) {
          ran.push(`${agent.name}:${name}`);
          return "ran";
        },
      });
    const [safe, danger] = [toolNamed("safe"), toolNamed("danger")];
    const grandchild = scriptedModel(leadScript(["safe", "danger"]));
    const child = scriptedModel(leadScript(["safe", "danger", asks("deep", "go")]));
    const deep = defineAgent({ name: "deep", model: grandchild, tools: [safe, danger] });
    const worker = defineAgent({ name: "worker", model: child, tools: [safe, danger, subagent(deep)] });
    const lead = defineAgent({
      name: "lead",
      model: scriptedModel(leadScript([asks("worker", "go")])),
      tools: [subagent(worker, { policy: { deniedTools: ["danger"] } })],
    });
    const { runtime, agent } = await started(lead);
    expect((await agent.executeTurn("go").result).status).toBe("completed");
    expect(child.calls[0]?.tools?.map(({ name }) => name)).toEqual(["safe", "deep"]);
    expect(grandchild.calls[0]?.tools?.map(({ name }) => name)).toEqual(["safe"]);
    expect(ran.toSorted()).toEqual(["deep:safe", "worker:safe"]);
    for (const { agentId, depth } of await runtime.list({ rootAgentId: "root-1" })) {
      const settled = await entriesOfType(stage().look(), agentId, "tool.settled");
      const outcomes = settled.filter(({ name }) => name === "danger").map(({ outcome }) => outcome);
      expect(outcomes).toEqual(depth === 0 ? [] : ["not_found"]);
    }
  });

  it("S14: a child's code cannot grant a denied tool to another child either", async () => {
    const danger = defineTool({
      name: "danger",
      description: "Harms.",
      parameters: z.object({}),
      execute: () => "harm done",
    });
    const model = scriptedModel("done");
    const worker = defineAgent({ name: "worker", model, tools: [danger] });
    const lead = defineAgent({
      name: "lead",
      model: scriptedModel(leadScript([asks("worker", "go")])),
      tools: [subagent(worker, { policy: { deniedTools: ["danger"] } })],
    });
    const { runtime, agent } = await started(lead);
    await agent.executeTurn("go").result;
    const child = (await runtime.list({ rootAgentId: "root-1" })).find(({ depth }) => depth === 1);
    const handle = await runtime.find(child?.agentId ?? "");
    const { turn } = await handle.spawn(worker, "go on", { key: "a" });
    await turn.result;
    expect(model.calls).toHaveLength(2);
    for (const { tools } of model.calls) expect(tools).toBeUndefined();
  });

  it("allowedTools grants a child only those", async () => {
    const one = defineTool({ name: "one", description: "One.", parameters: z.object({}), execute: () => "1" });
    const two = defineTool({ name: "two", description: "Two.", parameters: z.object({}), execute: () => "2" });
    const model = scriptedModel("done");
    const worker = defineAgent({ name: "worker", model, tools: [one, two] });
    const lead = defineAgent({
      name: "lead",
      model: scriptedModel(leadScript([asks("worker", "go")])),
      tools: [subagent(worker, { policy: { allowedTools: ["two"] } })],
    });
    const { agent } = await started(lead);
    await agent.executeTurn("go").result;
    expect(model.calls[0]?.tools?.map(({ name }) => name)).toEqual(["two"]);
  });

  it("run.spawn() is limited to the tree's depth as well", async () => {
    const definition = reader();
    const lead = defineAgent({ name: "lead", model: scriptedModel("unused") });
    const { agent } = await started(lead, [definition]);
    let at: Agent = agent;
    for (const key of ["1", "2", "3"]) at = (await at.spawn(definition, key, { key })).agent;
    await expect(at.spawn(definition, "4", { key: "4" })).rejects.toThrow(PolicyRefusedError);
  });
});
