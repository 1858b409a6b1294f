// `troupe show` of a team in a terminal of 80 columns.
import { expect, test } from "vitest";
import { createRuntime, defineAgent, subagent } from "../../../src/index.ts";
import { sqliteStores } from "../../../src/stores/sqlite.ts";
import { scriptedModel, type ScriptedToolCall } from "../../../src/testing/index.ts";
import { temporaryFile } from "../../stores/temporary-file.ts";
import { troupe } from "../support/in-process.ts";

const answer = `It is ${"quite ".repeat(22)}so.`;

/** A model that makes these calls and then answers. */
function asking(...toolCalls: readonly ScriptedToolCall[]) {
  return scriptedModel(({ messages }) => (messages.some(({ role }) => role === "tool") ? answer : { toolCalls }));
}

const reader = defineAgent({ name: "reader", model: scriptedModel(() => "read") });
const editor = defineAgent({
  name: "editor",
  model: asking({ name: "reader", arguments: { input: "Read." } }),
  tools: [subagent(reader)],
});
const lead = defineAgent({
  name: "lead",
  model: asking(
    { name: "editor", arguments: { input: "First half." } },
    { name: "editor", arguments: { input: "Second half." } },
  ),
  tools: [subagent(editor)],
});

test("a team of three levels is a tree that fits, with texts wrapped at spaces", async () => {
  const path = temporaryFile();
  const runtime = await createRuntime({ agents: [lead], stores: sqliteStores(path) });
  const agent = await runtime.agent("lead", { agentId: "team" });
  await agent.start();
  await agent.executeTurn("What is it?").result;
  await runtime.shutdown();
  const { out } = await troupe(["show", "team", "--store", path], { COLUMNS: "80" });
  const tree = out.slice(out.indexOf("Tree:") + 2, out.indexOf("Accounts:") - 1);
  expect(tree.map((line) => /^[ │├└─]*\w+/u.exec(line)?.[0])).toEqual([
    "lead",
    "├─ editor",
    "│  └─ reader",
    "└─ editor",
    "   └─ reader",
    "total",
  ]);
  expect(out.filter((line) => line.length > 80)).toEqual([]);
  const words = out.slice(out.lastIndexOf("[assistant]") + 1).join(" ");
  expect(words.replaceAll(/ +/g, " ").trim()).toBe(answer);
});
