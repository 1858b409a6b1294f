// A process that serves an agent over a SQLite file and never finishes the second half of its answer, until the test kills it.
import { createRuntime } from "troupe";
import { a2aSurface, agUiSurface, openaiSurface, serveRuntime, tokenAuth } from "troupe/server";
import { sqliteStores } from "troupe/stores/sqlite";
import { slowSpeaker } from "../support/slow-speaker.ts";
import { identities } from "./served.ts";

const [path = "", name = ""] = process.argv.slice(2);
const never = new Promise<void>(() => undefined);
const definition = slowSpeaker({ said: () => undefined, goOn: never, whole: never });
const runtime = await createRuntime({ agents: [definition], stores: sqliteStores(path) });
const surface =
  name === "a2a" ? await a2aSurface({ agents: [{ definition }] }) : name === "ag-ui" ? agUiSurface() : openaiSurface();
const server = serveRuntime(runtime, { authenticate: tokenAuth({ tokens: identities }), surfaces: [surface] });
const { url } = await server.listen();
console.log(url);
