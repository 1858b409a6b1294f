// A process that serves an agent with a slow tool over a SQLite file, and continues the turns that it finds.
import { appendFileSync } from "node:fs";
import { createRuntime } from "troupe";
import { a2aSurface, serveRuntime, tokenAuth } from "troupe/server";
import { sqliteStores } from "troupe/stores/sqlite";
import { identities } from "../server/served.ts";
import { workerAgent } from "./remote-server.ts";

const [path = "", publicUrl = "", runs = "", mode = "done"] = process.argv.slice(2);
const definition = workerAgent(async () => {
  appendFileSync(runs, "run\n");
  if (mode === "hangs") await new Promise(() => undefined);
  return "worked";
});
const runtime = await createRuntime({ agents: [definition], stores: sqliteStores(path) });
await runtime.recover();
const server = serveRuntime(runtime, {
  authenticate: tokenAuth({ tokens: identities }),
  surfaces: [await a2aSurface({ agents: [{ definition }], publicUrl })],
});
const { url } = await server.listen();
console.log(url);
