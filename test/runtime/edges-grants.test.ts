import { expect, it } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool, reactHistory, subagent } from "../../src/index.ts";
import type { SubagentPolicy } from "../../src/agents/index.ts";
import { gateToldBy } from "../../src/state/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { startAgent } from "../support/deciding.ts";
import { entriesOf, entriesOfType, toolTextsOf } from "../support/journal-probes.ts";
import { asks } from "../support/leads.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling } from "../support/turn-probes.ts";

const [search, erase] = ["search", "erase"].map((name) =>
  defineTool({ name, description: "Works.", parameters: z.object({}), effect: "none", execute: () => "done" }),
);

describeRuntimes("grants of agents with internal tools", (stage) => {
  it.each<[string, SubagentPolicy, string[]]>([
    [
      "without a policy they are granted",
      {},
      ["search", "erase", "load_history", "list_tool_calls", "load_tool_results"],
    ],
    [
      "R6: tools on the agent's own context stay when a policy grants only outer tools",
      { allowedTools: ["search"] },
      ["search", "load_history", "list_tool_calls", "load_tool_results"],
    ],
    [
      "S8: an internal tool denied by name is not granted",
      { deniedTools: ["load_history", "erase"] },
      ["search", "list_tool_calls", "load_tool_results"],
    ],
  ])("%s", async (_what, policy, granted) => {
    const tools = [search, erase].flatMap((tool) => tool ?? []);
    const offered: string[][] = [];
    const model = scriptedModel(({ tools: given = [], messages }) => {
      offered.push(given.map(({ name }) => name));
      return messages.at(-1)?.role === "tool" ? "read" : calling("load_history", "erase", "search");
    });
    const reader = defineAgent({ name: "reader", model, tools, history: reactHistory() });
    const lead = defineAgent({
      name: "lead",
      model: scriptedModel([calling(asks("reader", "read")), "the end"]),
      tools: [subagent(reader, { policy })],
    });
    const runtime = await stage().open({ agents: [lead] });
    const agent = await startAgent(runtime, "lead", "l");
    expect((await agent.executeTurn("go").result).text).toBe("the end");
    expect(offered).toEqual([granted, granted]);
    const [child] = await runtime.list({ rootAgentId: "l" }).then((all) => all.filter(({ depth }) => depth === 1));
    const childId = child?.agentId ?? "";
    const [started] = await entriesOfType(stage().look(), childId, "turn.started");
    expect(started?.tools.map(({ name }) => name)).toEqual(granted);
    const allowed = (await entriesOf(stage().look(), childId)).flatMap((entry) =>
      gateToldBy(entry)?.verdict === "allowed" && "name" in entry ? [entry.name] : [],
    );
    expect(allowed).toEqual(["load_history", "erase", "search"].filter((name) => granted.includes(name)));
    expect(await toolTextsOf(agent)).toEqual(["read"]);
  });
});
