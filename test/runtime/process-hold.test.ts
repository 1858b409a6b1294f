import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { repositoryRoot } from "../../scripts/run-command.ts";
import { programTimeoutMs, runOffline } from "../support/programs.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(repositoryRoot, ".troupe-hold-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const program = `
import { createRuntime, defineAgent, ModelError } from "troupe";
import { scriptedModel } from "troupe/testing";

const busy = new ModelError("too many requests", { retryable: true, status: 429, mayHaveBeenSent: true, retryAfterMs: 400 });
const model = scriptedModel([{ error: busy }, "answered at the second attempt"]);
const runtime = await createRuntime({ agents: [defineAgent({ name: "patient", model })] });
const agent = await runtime.agent("patient");
await agent.start();
console.log((await agent.executeTurn("hello").result).text);
// No shutdown: with no turn under way nothing holds the process.
`;

it(
  "a process whose turn only waits for its next attempt stays alive, and exits afterwards",
  async () => {
    const file = join(folder, "program.ts");
    writeFileSync(file, program);
    const { ok, stdout, output } = await runOffline("node", [file], folder);
    expect({ ok, stdout: stdout.trim() }, output).toEqual({ ok: true, stdout: "answered at the second attempt" });
  },
  programTimeoutMs,
);

const waiting = `
import { createRuntime, defineAgent, defineTool } from "troupe";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const pay = defineTool({ name: "pay", description: "Pays.", parameters: z.object({}), needsApproval: true, execute: () => "paid" });
const model = scriptedModel([{ toolCalls: [{ name: "pay", arguments: {} }] }, "paid it"]);
const runtime = await createRuntime({ agents: [defineAgent({ name: "clerk", model, tools: [pay] })], idle: { keptMs: 0 } });
const agent = await runtime.agent("clerk");
await agent.start();
const turn = agent.executeTurn("pay");
const { requests } = await turn.settled;
turn.result.then(({ text }) => console.log(text));
// Holds nothing: without the turn the process would end before it.
const look = () =>
  void setTimeout(async () => {
    if ((await runtime.metrics()).liveAgents > 0) return look();
    console.log("passive");
    await runtime.decide(requests[0].requestId, { verdict: "approved" });
  }, 10).unref();
look();
`;

it(
  "a process whose turn waits stays alive although its agent is passive, and exits after the turn",
  async () => {
    const file = join(folder, "waiting.ts");
    writeFileSync(file, waiting);
    const { ok, stdout, output } = await runOffline("node", [file], folder);
    expect({ ok, stdout: stdout.trim() }, output).toEqual({ ok: true, stdout: "passive\npaid it" });
  },
  programTimeoutMs,
);
