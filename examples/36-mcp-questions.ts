// A question of an MCP server in the middle of a call: the process ends, another one answers, and the call goes on with one effect.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRuntime, defineAgent, type Runtime, textOf } from "troupe";
import { mcp, type McpTools } from "troupe/mcp";
import { sqliteStores } from "troupe/stores/sqlite";
import { scriptedModel } from "troupe/testing";

// The server, which would usually be a program of others; it needs the package @modelcontextprotocol/server.
const program = `
import { acceptedContent, inputRequired, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";
serveStdio(() => {
  const server = new McpServer({ name: "inn", version: "1.0.0" });
  server.registerTool("book", { description: "Books a room.", inputSchema: z.object({ guest: z.string() }) }, ({ guest }, { mcpReq }) => {
    const answer = acceptedContent(mcpReq.inputResponses, "stay");
    if (answer !== undefined) return { content: [{ type: "text", text: answer.nights + " nights for " + guest }] };
    const requestedSchema = { type: "object", properties: { nights: { type: "integer", minimum: 1 } }, required: ["nights"] };
    const stay = inputRequired.elicit({ message: "How long?", requestedSchema });
    return inputRequired({ inputRequests: { stay }, requestState: "asked" });
  });
  return server;
});
`;
const folder = mkdtempSync(join(tmpdir(), "troupe-inn-"));

/** What each process does at its start. */
async function open(): Promise<{ runtime: Runtime; inn: McpTools }> {
  const args = ["--input-type=module", "--eval", program];
  const inn = await mcp({ name: "inn", command: "node", args, cwd: import.meta.dirname });
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.role === "user"
      ? { toolCalls: [{ name: "inn__book", arguments: { guest: "Ada" } }] }
      : "The room is booked.",
  );
  const clerk = defineAgent({ name: "clerk", model, tools: [...inn.tools] });
  return { runtime: await createRuntime({ agents: [clerk], stores: sqliteStores(join(folder, "troupe.db")) }), inn };
}

const first = await open();
const before = await first.runtime.agent("clerk", { agentId: "clerk" });
await before.start();
await before.executeTurn("A room for Ada, please.", { key: "ada" }).settled;
await first.runtime.shutdown();
await first.inn.close();

const second = await open();
const agent = await second.runtime.agent("clerk", { agentId: "clerk" });
await agent.start();
for (const { requestId, prompt } of await agent.requests()) {
  console.log(prompt);
  const wrong = await agent.decide(requestId, { verdict: "answered", result: "a while" });
  console.log("-", wrong.status);
}
const turn = agent.executeTurn("A room for Ada, please.", { key: "ada" });
const rest = await turn.settled;
if (rest.status === "waiting" && rest.reason === "request") {
  for (const { requestId, prompt } of rest.requests) {
    console.log(prompt.split("\n")[0]);
    await agent.decide(requestId, { verdict: "answered", result: 3 });
  }
}
console.log((await turn.result).text);
for (const { role, content } of await agent.getMessages()) if (role === "tool") console.log("-", textOf(content));
await second.runtime.shutdown();
await second.inn.close();
rmSync(folder, { recursive: true });
