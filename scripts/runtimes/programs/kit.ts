/** The kit: files and commands of a workspace, and a memory on SQLite's full-text index. */
import { mkdirSync } from "node:fs";
import { createAgent, textOf } from "troupe";
import { folder, memory, sqliteMemory, workspace } from "troupe/kit";
import { scriptedModel } from "troupe/testing";

mkdirSync("work");
const store = sqliteMemory({ file: "./memory.db" });
const call = (name: string, given: Readonly<Record<string, string>>) => ({ toolCalls: [{ name, arguments: given }] });
const model = scriptedModel([
  call("write", { path: "sum.txt", content: "20 + 22\n" }),
  call("read", { path: "../memory.db" }),
  call("shell", { command: "cat sum.txt; echo $((20 + 22))" }),
  call("remember", { text: "The sum of the shed is 42." }),
  call("search_memory", { query: "sum of the shed" }),
  "Done.",
]);
const agent = await createAgent({
  model,
  plugins: [workspace(folder("work"), { shell: { needsApproval: false } }), memory({ store, scope: "agent" })],
});
await agent.start();
const { text } = await agent.executeTurn("Write a sum.").result;
const results = (await agent.getMessages()).filter(({ role }) => role === "tool").map(({ content }) => textOf(content));
await agent.runtime.shutdown();
await store.close();
process.stdout.write(
  JSON.stringify({
    text,
    isJailed: !/SQLite/.test(results[1] ?? ""),
    shell: /20 \+ 22\s+42/.test(results[2] ?? ""),
    remembered: results[4]?.includes("The sum of the shed is 42.") ?? false,
    results: results.length,
  }),
);
