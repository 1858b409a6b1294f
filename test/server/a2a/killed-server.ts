// A process that serves the desk over a SQLite file and calls a webhook, until the test kills it.
import { createRuntime } from "troupe";
import { a2aSurface, serveRuntime, tokenAuth } from "troupe/server";
import { sqliteStores } from "troupe/stores/sqlite";
import { webhookKey } from "../../support/hook-receiver.ts";
import { identities } from "../served.ts";
import { deskAgent } from "./a2a-served.ts";

const [path = "", origin = ""] = process.argv.slice(2);
const definition = deskAgent();
const runtime = await createRuntime({ agents: [definition], stores: sqliteStores(path) });
const server = serveRuntime(runtime, {
  authenticate: tokenAuth({ tokens: identities }),
  surfaces: [await a2aSurface({ agents: [{ definition }] })],
  webhooks: { keys: [webhookKey()], origins: [origin] },
});
const { url } = await server.listen();
console.log(url);
