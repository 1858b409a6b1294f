// A workspace: files in a folder that no path leaves, and a shell whose commands a person approves.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAgent, textOf } from "troupe";
import { folder, workspace } from "troupe/kit";
import { scriptedModel } from "troupe/testing";

const path = await mkdtemp(join(tmpdir(), "workspace-"));
const model = scriptedModel([
  { toolCalls: [{ name: "write", arguments: { path: "src/sum.js", content: "console.log(1 + 1);\n" } }] },
  { toolCalls: [{ name: "read", arguments: { path: "../../etc/passwd" } }] },
  { toolCalls: [{ name: "edit", arguments: { path: "src/sum.js", old: "1 + 1", new: "20 + 22" } }] },
  { toolCalls: [{ name: "glob", arguments: { pattern: "**/*.js" } }] },
  { toolCalls: [{ name: "shell", arguments: { command: "node src/sum.js" } }] },
  "The sum is 42.",
]);
const agent = await createAgent({ model, plugins: [workspace(folder(path), { shell: true })] });
await agent.start();
const turn = agent.executeTurn("Write a program that adds 20 and 22, and run it.");
const rest = await turn.settled;
if (rest.status === "waiting" && rest.reason === "request") {
  for (const { requestId, prompt, argumentsHash } of rest.requests) {
    console.log("approval -", prompt);
    await agent.decide(requestId, { verdict: "approved", argumentsHash });
  }
}
console.log((await turn.result).text);
for (const { role, content } of await agent.getMessages()) if (role === "tool") console.log("-", textOf(content));
await agent.runtime.shutdown();
await rm(path, { recursive: true });
