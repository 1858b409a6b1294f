// `troupe steer`: an input for an agent's open turn, whichever process runs it.
import { expect, test } from "vitest";
import { createRuntime, defineAgent, defineTool } from "../../../src/index.ts";
import { sqliteStores } from "../../../src/stores/sqlite.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { z } from "zod";
import { temporaryFile } from "../../stores/temporary-file.ts";
import { calling, createGate } from "../../support/turn-probes.ts";
import { troupe } from "../support/in-process.ts";

async function planted() {
  const path = temporaryFile();
  const work = createGate();
  const tool = defineTool({
    name: "work",
    description: "Works.",
    parameters: z.object({}),
    effect: "keyed",
    execute: async () => {
      await work.pass();
      return "worked";
    },
  });
  const model = scriptedModel([calling("work"), "done", "done again"]);
  const clerk = defineAgent({ name: "clerk", model, tools: [tool] });
  const runtime = await createRuntime({ agents: [clerk], stores: sqliteStores(path) });
  const agent = await runtime.agent("clerk", { agentId: "desk" });
  await agent.start();
  const steer = (...words: readonly string[]) => troupe(["steer", ...words, "--store", path]);
  return { runtime, agent, work, model, steer };
}

test("a text reaches the turn of another process, once for each key", async () => {
  const { runtime, agent, work, model, steer } = await planted();
  const turn = agent.executeTurn("go");
  await work.reached();
  const told = { code: 0, out: ["Delivered to desk#1: its model call of step 2 sees it."], notes: [] };
  expect(await steer("desk", "use blue", "--key", "k")).toEqual(told);
  expect(await steer("des", "use blue", "--key", "k")).toEqual(told);
  expect(await agent.steer("use blue", { key: "k" })).toMatchObject({ status: "delivered", step: 2 });
  work.open();
  await turn.result;
  expect(model.calls[1]?.messages.filter(({ content }) => content === "use blue")).toHaveLength(1);
  await runtime.shutdown();
});

test("without an open turn and a process, the text is queued, and the line to continue is shown", async () => {
  const { runtime, steer } = await planted();
  await runtime.shutdown();
  const { code, out } = await steer("desk", "use blue");
  expect(code).toBe(0);
  expect(out.slice(0, 2)).toEqual([
    "Queued as turn desk#1.",
    expect.stringMatching(/^No process runs it: .* resume desk/),
  ]);
});

test.each([
  [["nobody", "go"], /there is no agent "nobody"/],
  [["desk", ""], /text/],
  [["desk", "go", "--key", "a b"], /visible ASCII/],
])("%j is refused", async (words, said) => {
  const { runtime, steer } = await planted();
  const { out, notes, code } = await steer(...words);
  expect({ code, out }).toEqual({ code: 2, out: [] });
  expect(notes.join(" ")).toMatch(said);
  await runtime.shutdown();
});
