// A to-do list that the model keeps while it works, and notes about a person that all agents of this person share.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRuntime, defineAgent, textOf } from "troupe";
import { fileNotes, notes, todos } from "troupe/kit";
import { scriptedModel } from "troupe/testing";

const folder = await mkdtemp(join(tmpdir(), "notes-"));
const notebook = notes({ scope: "owner", store: fileNotes(folder) });
const list = (...statuses: readonly string[]) => ({
  todos: ["Find three recipes", "Choose one"].map((content, index) => ({ content, status: statuses[index] })),
});
const planner = defineAgent({
  name: "planner",
  model: scriptedModel([
    { toolCalls: [{ name: "write_todos", arguments: list("in_progress", "pending") }] },
    { toolCalls: [{ name: "add_note", arguments: { text: "Eats no nuts." } }] },
    { toolCalls: [{ name: "write_todos", arguments: list("completed", "completed") }] },
    "Lemon cake, without nuts.",
  ]),
  plugins: [todos(), notebook],
});
const waiter = defineAgent({
  name: "waiter",
  model: scriptedModel([{ toolCalls: [{ name: "read_notes", arguments: {} }] }, "Noted: no nuts."]),
  plugins: [notebook],
});
const runtime = await createRuntime({ agents: [planner, waiter] });
for (const [name, ownerId] of [
  ["planner", "ada"],
  ["waiter", "ada"],
] as const) {
  const agent = await runtime.agent(name, { agentId: `${name}-1`, ownerId });
  await agent.start();
  console.log(`${name}: ${(await agent.executeTurn("A cake for Sunday, please.").result).text}`);
  for (const { role, content } of await agent.getMessages()) {
    if (role === "tool") console.log(textOf(content).replaceAll(/^/gm, "  "));
  }
}
await runtime.shutdown();
await rm(folder, { recursive: true });
