import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { z } from "zod";
import { type AgentDefinition, defineAgent, defineTool, type Runtime, subagent } from "../../src/index.ts";
import {
  renderTrace,
  sessionRecord,
  sessionYaml,
  terminalLog,
  textLog,
  traceToOpenTelemetry,
  yamlSession,
} from "../../src/telemetry/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { createSpanRecorder } from "./span-recorder.ts";
import { temporaryFolder } from "./team.ts";

/** A secret that contains where it is used. */
const canary = (place: string): string => `canary-${place}-7f3a9c`;
const canaries = /canary-[a-z]+/g;

const headers = `{"authorization":"Bearer ${canary("header")}","x-api-key":"${canary("apikey")}","accept":"*/*"}`;

/** An agent whose tools and models leak the secrets that they have. */
function carelessTeam(): AgentDefinition {
  const pay = defineTool({
    name: "pay",
    description: "Pays.",
    parameters: z.object({ card: z.string(), password: z.string() }),
    secrets: { pin: () => canary("declared") },
    effect: "none",
    execute: async ({ pin }, run) => {
      const { apiKey } = (run.auth?.credentials ?? {}) as { apiKey?: string };
      run.progress({ pin, key: canary("environment") });
      await run.saveArtifact({ name: `receipt ${canary("environment")}`, contentType: "text/plain", content: "paid" });
      return apiKey === canary("credentials") ? `paid with ${pin} and ${canary("environment")}` : "no";
    },
  });
  const fail = defineTool({
    name: "fail",
    description: "Fails.",
    parameters: z.object({}),
    effect: "none",
    execute: () => {
      throw new Error(
        `401 at https://ann:${canary("url")}@pay.example/?password=${canary("form")}&n=1 with ${headers}, token ${canary("environment")}`,
      );
    },
  });
  const child = defineAgent({ name: "child", model: scriptedModel(`I saw ${canary("environment")}`) });
  const calls = [
    { name: "pay", arguments: { card: "4711", password: canary("argument") } },
    { name: "fail" },
    { name: "child", arguments: { input: `use ${canary("environment")}` } },
    { name: canary("environment") },
  ];
  const model = scriptedModel([
    { toolCalls: calls },
    { text: `Paid, with ${canary("environment")}.` },
    { error: new Error(`Incorrect API key provided: sk-${canary("provider")}`) },
  ]);
  return defineAgent({ name: "payer", model, tools: [pay, fail, subagent(child)] });
}

async function runTurns(runtime: Runtime): Promise<void> {
  const desk = await runtime.agent("payer", { agentId: "desk" });
  await desk.start();
  const auth = { actorId: "ann", credentials: { apiKey: canary("credentials") } };
  expect((await desk.executeTurn(`Pay, my key is ${canary("environment")}`, { auth }).result).status).toBe("completed");
  expect((await desk.executeTurn("Pay again", { auth }).result).status).toBe("failed");
}

beforeEach(() => {
  process.env.CANARY_API_KEY = canary("environment");
});
afterEach(() => {
  delete process.env.CANARY_API_KEY;
});

function filesIn(folder: string): string {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((file) => file.isFile());
  return files.map((file) => readFileSync(join(file.parentPath, file.name), "latin1")).join("\n");
}

describeRuntimes(
  "S13: canaries",
  (stage) => {
    it("are in no log, session file, span, table or printed line, though all of these contain contents", async () => {
      const runtime = await stage().open({ agents: [carelessTeam()] });
      const folder = temporaryFolder();
      const recorder = createSpanRecorder();
      const lines: string[] = [];
      const terminal = terminalLog(runtime, { write: (line) => lines.push(line), content: true });
      const open = [
        textLog(runtime, { directory: join(folder, "logs") }, { content: true }),
        yamlSession(runtime, { directory: join(folder, "sessions"), messages: true }),
        traceToOpenTelemetry(runtime, { tracerProvider: recorder.tracerProvider, captureContent: true }),
      ];
      await runTurns(runtime);
      for (const telemetry of open) await telemetry.close();
      terminal.close();
      const desk = await runtime.find("desk");
      const table = renderTrace([...(await desk.getTrace("desk#1")), ...(await desk.getTrace("desk#2"))]);
      const record = sessionYaml(await sessionRecord(runtime, "desk", { messages: true }));

      const spans = recorder
        .spans()
        .map(({ name, attributes, events, status }) => ({ name, attributes, events, status }));
      const shown = {
        lines: lines.join(""),
        logs: filesIn(join(folder, "logs")),
        sessions: filesIn(join(folder, "sessions")),
        spans: JSON.stringify(spans),
        table,
        record,
      };
      for (const [where, text] of Object.entries(shown)) {
        expect({ where, found: text.match(canaries) ?? [] }).toEqual({ where, found: [] });
        // Each output did contain the text around the canaries.
        expect(text).toContain("[redacted]");
        expect(text).toContain("pay");
        expect(text).toMatch(/401 at https/);
      }
      expect(shown.sessions).toContain("4711");
    });

    it("of credentials and of secret parameters are in no event and no store", async () => {
      const runtime = await stage().open({ agents: [carelessTeam()] });
      const events: unknown[] = [];
      runtime.subscribe((event) => events.push(event));
      await runTurns(runtime);
      const stores = stage().look();
      const agents = await stores.listAgents({ tenant: "default" });
      const kept: unknown[] = [agents, await stores.readTree("default", "desk", 0, 1_000)];
      for (const { agentId } of agents) {
        const key = { tenant: "default", agentId };
        kept.push(await stores.messages(key), await stores.artifacts(key), await stores.inbox(key));
      }
      const folder = stage().folder;
      const everything = [
        JSON.stringify(events),
        JSON.stringify(kept),
        ...(folder === undefined ? [] : [filesIn(folder)]),
      ];
      for (const text of everything) {
        expect(text).toContain("[secret:pin]");
        expect(text).not.toContain(canary("credentials"));
        expect(text).not.toContain(canary("declared"));
      }
    });
  },
  ["memory", "sqlite"],
);
