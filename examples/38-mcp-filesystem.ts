// An agent with the filesystem server of MCP: it reads freely, and a person approves every change.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createAgent, textOf } from "troupe";
import { mcp } from "troupe/mcp";
import { scriptedModel } from "troupe/testing";

const folder = mkdtempSync(join(tmpdir(), "troupe-example-"));
const list = join(folder, "shopping.txt");
writeFileSync(list, "bread\nbutter\n");

// The server needs the package @modelcontextprotocol/server-filesystem; with npx it would be installed on first use.
const program = fileURLToPath(import.meta.resolve("@modelcontextprotocol/server-filesystem/dist/index.js"));
const files = await mcp({
  name: "files",
  command: "node",
  args: [program, folder],
  // Its annotations are right: tools that only read need no approval, and may be repeated.
  trust: true,
  approval: "writes",
  tools: { move_file: false },
});

const edits = [{ oldText: "butter", newText: "jam" }];
const model = scriptedModel([
  { toolCalls: [{ name: "files__read_text_file", arguments: { path: list } }] },
  { toolCalls: [{ name: "files__edit_file", arguments: { path: list, edits } }] },
  { toolCalls: [{ name: "files__write_file", arguments: { path: list, content: "" } }] },
  "There is jam on the list now.",
]);
const agent = await createAgent({ model, tools: files.tools });
await agent.start();
const turn = agent.executeTurn(`Put jam on ${list} instead of butter, then tidy up.`);
for (let rest = await turn.settled; rest.status === "waiting" && rest.reason === "request"; rest = await turn.settled) {
  for (const { requestId, name } of rest.requests) {
    const isEdit = name === "files__edit_file";
    console.log(name, isEdit ? "is approved" : "is rejected");
    await agent.decide(requestId, isEdit ? { verdict: "approved" } : { verdict: "rejected", reason: "keep the list" });
  }
}
console.log((await turn.result).text);
for (const { role, content } of await agent.getMessages()) {
  if (role === "tool") console.log("-", textOf(content).replaceAll(folder, "").replaceAll("\n", " "));
}
console.log("the list:", readFileSync(list, "utf8").trim().replaceAll("\n", ", "));

await agent.runtime.shutdown();
await files.close();
rmSync(folder, { recursive: true });
