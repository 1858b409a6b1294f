// `troupe budget`: changes an agent's lifetime limits without a process that runs it.
import { expect, test } from "vitest";
import { createRuntime, defineAgent } from "../../../src/index.ts";
import { sqliteStores } from "../../../src/stores/sqlite.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { temporaryFile } from "../../stores/temporary-file.ts";
import { troupe } from "../support/in-process.ts";

const clerk = defineAgent({ name: "clerk", model: scriptedModel(() => "done") });

async function planted() {
  const path = temporaryFile();
  const runtime = await createRuntime({ agents: [clerk], stores: sqliteStores(path) });
  for (const [agentId, budget] of [["desk", { maxTokens: 300 }], ["free"]] as const) {
    const agent = await runtime.agent("clerk", { agentId, budget });
    await agent.start();
  }
  await runtime.shutdown();
  return { path, budget: (...words: readonly string[]) => troupe(["budget", ...words, "--store", path]) };
}

test("changes the given limits, which apply when the agent runs again", async () => {
  const { path, budget } = await planted();
  const changed = await budget("desk", "--max-tokens", "70000", "--max-steps", "5");
  expect(changed).toEqual({
    code: 0,
    out: ["Changed: desk, its whole life: no limit of steps → 5 steps, 300 tokens → 70,000 tokens"],
    notes: [],
  });
  expect((await budget("desk", "--max-steps", "5")).out).toEqual(["desk already has these limits."]);
  expect((await budget("desk", "--max-steps", "none")).out).toEqual([
    "Changed: desk, its whole life: 5 steps → no limit of steps",
  ]);
  const runtime = await createRuntime({ agents: [clerk], stores: sqliteStores(path) });
  const agent = await runtime.find("desk");
  await agent.start();
  expect((await agent.executeTurn("go").result).status).toBe("completed");
  const journal = await runtime.stores.readJournal({ tenant: "default", agentId: "desk" }, 1);
  const facts = journal.flatMap(({ entries }) => entries.filter(({ type }) => type === "budget.changed"));
  expect(facts).toMatchObject([{ limits: { maxSteps: 5 } }, { before: { maxSteps: 5 } }]);
  await runtime.shutdown();
});

test.each([
  [["desk"], 2, /give a limit to change, for instance --max-cost 5/],
  [["desk", "--max-tokens", "-5"], 2, /whole number of at least 1/],
  [["desk", "--max-cots", "5"], 2, /Did you mean --max-cost\?/],
  [["free", "--max-cost", "5"], 2, /created without a budget for its life/],
  [["nobody", "--max-cost", "5"], 2, /there is no agent "nobody"/],
])("%j is refused", async (words, code, said) => {
  const { budget } = await planted();
  const { out, notes, code: given } = await budget(...words);
  expect({ given, out }).toEqual({ given: code, out: [] });
  expect(notes.join(" ")).toMatch(said);
});
