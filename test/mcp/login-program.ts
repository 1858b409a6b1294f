// A process with an agent whose call waits for a login, over a SQLite file, until the test kills it.
import { createRuntime, defineAgent } from "troupe";
import { fileMcpTokens, mcp } from "troupe/mcp";
import { sqliteStores } from "troupe/stores/sqlite";
import { scriptedModel } from "troupe/testing";
import { toolTextsOf } from "../support/journal-probes.ts";

const [path = "", url = "", folder = "", key = "", redirectUrl = ""] = process.argv.slice(2);
const store = fileMcpTokens({ folder, key });
const desk = await mcp({ name: "desk", url, auth: { oauth: { redirectUrl, store } } });
const model = scriptedModel(({ messages }) =>
  messages.at(-1)?.role === "user"
    ? { toolCalls: [{ name: "desk__pay", arguments: { amount: 5, key: "k1" } }] }
    : "The work is done.",
);
const caller = defineAgent({ name: "caller", tools: [...desk.tools], model });
const runtime = await createRuntime({ agents: [caller], stores: sqliteStores(path) });
const known = await runtime.list();
const agent = known.length === 0 ? await runtime.agent("caller", { agentId: "caller" }) : await runtime.find("caller");
await agent.start();
if (known.length === 0) {
  const rest = await agent.executeTurn("go", { auth: { actorId: "ann" } }).settled;
  console.log(rest.status);
  // The test kills this process.
  setInterval(() => undefined, 60_000);
} else {
  const [request] = await runtime.requests();
  if (request) await runtime.decide(request.requestId, { verdict: "provided", by: "ann" });
  const { status } = await agent.turn("caller#1").result;
  console.log(status, ...(await toolTextsOf(agent)));
  await runtime.shutdown();
  await desk.close();
}
