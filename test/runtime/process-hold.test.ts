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
  "a process whose turn only waits for its next attempt stays, and ends by itself afterwards",
  async () => {
    const file = join(folder, "program.ts");
    writeFileSync(file, program);
    const { ok, stdout, output } = await runOffline("node", [file], folder);
    expect({ ok, stdout: stdout.trim() }, output).toEqual({ ok: true, stdout: "answered at the second attempt" });
  },
  programTimeoutMs,
);
