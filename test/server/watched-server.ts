import { createRuntime, defineAgent } from "troupe";
import {
  a2aSurface,
  agUiSurface,
  aiSdkSurface,
  apiSurface,
  openaiSurface,
  serveRuntime,
  tealSurface,
  tokenAuth,
} from "troupe/server";
import { sqliteStores } from "troupe/stores/sqlite";
import { startInspector } from "troupe/inspector";
import { scriptedModel } from "troupe/testing";
import { tokens } from "./served.ts";

/**
 * A process with a server of every surface and an inspector. It sends its URLs and the routes with a body and,
 * on request, the longest block of its event loop since the last request: in milliseconds of the clock and of its
 * thread's processor time.
 */
const desk = defineAgent({ name: "desk", clientTools: true, model: scriptedModel(() => ({ text: "done" })) });
const [, , path] = process.argv;
const runtime = await createRuntime({ agents: [desk], ...(path === undefined ? {} : { stores: sqliteStores(path) }) });
const many = 1_000_000;
const surfaces = [
  apiSurface(),
  openaiSurface(),
  agUiSurface(),
  aiSdkSurface(),
  await a2aSurface(),
  tealSurface({ agents: [{ definition: desk, version: "1.0" }] }),
];
const server = serveRuntime(runtime, {
  authenticate: tokenAuth({ tokens: { [tokens.ann]: { userId: "ann", scopes: [] } } }),
  surfaces,
  limits: { requestsPerMinute: many, turnsPerMinute: many, openTurns: many },
});
const { url } = await server.listen();
const inspector = await startInspector({ decide: true });
inspector.watch(runtime);
const routes = surfaces.flatMap((surface) => surface.routes.filter(({ body }) => body).map(({ path }) => path));

let last = { clock: performance.now(), cpu: process.threadCpuUsage() };
let longest = { clock: 0, cpu: 0 };
setInterval(() => {
  const now = { clock: performance.now(), cpu: process.threadCpuUsage() };
  const cpu = (now.cpu.user + now.cpu.system - last.cpu.user - last.cpu.system) / 1_000;
  longest = { clock: Math.max(longest.clock, now.clock - last.clock), cpu: Math.max(longest.cpu, cpu) };
  last = now;
}, 1);
process.on("message", () => {
  process.send?.({ longest });
  longest = { clock: 0, cpu: 0 };
});
process.on("disconnect", () => process.exit());
process.send?.({ url, inspector: { url: inspector.origin, token: inspector.tokens.act }, routes });
