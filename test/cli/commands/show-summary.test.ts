// `troupe show --summary` in a terminal of 80 columns.
import { expect, test } from "vitest";
import { createRuntime, defineAgent, subagent } from "../../../src/index.ts";
import { sqliteStores } from "../../../src/stores/sqlite.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { temporaryFile } from "../../stores/temporary-file.ts";
import { troupe } from "../support/in-process.ts";

const usage = { inputTokens: 2_000, outputTokens: 100, cachedInputTokens: 500 };

test("sums a run up: why it stopped, the spending, what was slow, and the costs", async () => {
  const path = temporaryFile();
  const reader = defineAgent({ name: "reader", model: scriptedModel({ text: "read", usage }, { name: "small-1" }) });
  const lead = defineAgent({
    name: "lead",
    price: { inputPerMillion: 2, outputPerMillion: 10 },
    tools: [subagent(reader)],
    model: scriptedModel(
      [
        { toolCalls: [{ name: "reader", arguments: { input: "this" } }], usage },
        { text: "done", usage },
      ],
      { name: "large-1" },
    ),
  });
  const runtime = await createRuntime({ agents: [lead], stores: sqliteStores(path) });
  const agent = await runtime.agent("lead", { agentId: "team" });
  await agent.start();
  await agent.executeTurn("What is it?").result;
  await runtime.shutdown();
  const { out } = await troupe(["show", "team", "--summary", "--store", path], { COLUMNS: "80" });
  expect(out.filter((line) => line.length > 80)).toEqual([]);
  const text = out.join("\n");
  expect(text).toMatch(/^Why it stopped:\n {2}lead: turn 1 completed after 2 steps, at /);
  expect(text).toContain("Who spent it:\n  lead by its own calls: $0.0100 of ≥ $0.0100, 100 %");
  expect(text).toContain("What was slow:\n  model call ");
  expect(text).toContain("Task: What is it?");
  expect(text).toMatch(/^large-1 +2 +4k +1k \(25 %\) +200 +0 +\$0.0100$/m);
  expect(text).toMatch(/^reader ~\w+ +1 +2k +500 \(25 %\) +100 +0 +\?$/m);
  const { out: lines } = await troupe(["show", "team", "--summary", "--json", "--store", path], {});
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ isOpen: false, total: { calls: 3 } });
});
