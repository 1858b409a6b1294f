// A process that serves an agent over an SQLite file and never gets to the second half of its answer. It is to be killed.
import { createRuntime } from "troupe";
import { agUiSurface, serveRuntime, tokenAuth } from "troupe/server";
import { sqliteStores } from "troupe/stores/sqlite";
import { slowSpeaker } from "../../support/slow-speaker.ts";
import { identities } from "../served.ts";

const [path = ""] = process.argv.slice(2);
const never = new Promise<void>(() => undefined);
const definition = slowSpeaker({ said: () => undefined, goOn: never, whole: never });
const runtime = await createRuntime({ agents: [definition], stores: sqliteStores(path) });
const server = serveRuntime(runtime, { authenticate: tokenAuth({ tokens: identities }), surfaces: [agUiSurface()] });
const { url } = await server.listen();
console.log(url);
