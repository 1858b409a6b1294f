import { expect, test } from "vitest";
import { createRuntime, defineAgent, memoryStores, textOf } from "../../src/index.ts";
import { todos } from "../../src/kit/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { resultsOf } from "./kit-runs.ts";

const write = (...list: readonly (readonly [content: string, status: string])[]) => ({
  name: "write_todos",
  arguments: { todos: list.map(([content, status]) => ({ content, status })) },
});
const read = { name: "read_todos", arguments: {} };

test("the list is written as a whole, each version an artifact, and survives a restart", async () => {
  const stores = memoryStores();
  const equipment = { plugins: [todos()], runtime: { stores } };
  const written = await resultsOf(
    [
      read,
      write(["buy\nflour", "in_progress"], ["bake", "pending"]),
      write(["buy flour", "completed"], ["bake", "in_progress"]),
    ],
    equipment,
  );
  expect(written).toEqual([
    "The list is empty.",
    "[>] buy flour\n[ ] bake\n\n0 of 2 completed.",
    "[x] buy flour\n[>] bake\n\n1 of 2 completed.",
  ]);
  expect(await resultsOf([read], equipment)).toEqual([written[2]]);
  const [other] = await resultsOf([read], { ...equipment, agentId: "clerk-2" });
  expect(other).toBe("The list is empty.");
  const runtime = await createRuntime({ agents: [], stores });
  const versions = await stores.artifacts({ tenant: "default", agentId: "clerk-1" });
  expect(versions.map(({ name, version }) => `${name} ${version}`)).toEqual(["todos.json 1", "todos.json 2"]);
  await runtime.shutdown();
});

test("the system prompt and the tools stay the same while the list changes", async () => {
  const prefixes = new Set<string>();
  const model = scriptedModel(({ messages, tools }, { index }) => {
    prefixes.add(JSON.stringify([messages.filter(({ role }) => role === "system"), tools]));
    return index < 2 ? { toolCalls: [write(["bake", index === 0 ? "pending" : "completed"])] } : "Done.";
  });
  const runtime = await createRuntime({
    agents: [defineAgent({ name: "clerk", model, instructions: "Bake.", plugins: [todos()] })],
  });
  const agent = await runtime.agent("clerk");
  await agent.start();
  await agent.executeTurn("Go.").result;
  expect(prefixes.size).toBe(1);
  expect([...prefixes][0]).not.toContain("pending\\n");
  expect(
    (await agent.getMessages()).some(({ role, content }) => role === "system" && textOf(content).includes("bake")),
  ).toBe(false);
  await runtime.shutdown();
});

test("a list that is wrong is refused, and nothing is stored", async () => {
  const results = await resultsOf(
    [write(["", "pending"]), write(["x", "done"]), { name: "write_todos", arguments: { todos: "x" } }, read],
    { plugins: [todos()] },
  );
  expect(results.at(-1)).toBe("The list is empty.");
  expect(results[1]).toContain("status");
});
