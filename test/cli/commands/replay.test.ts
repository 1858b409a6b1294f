// `troupe replay` and `troupe check-upgrade`, with agent files and a store as in a CI job.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createRuntime } from "../../../src/index.ts";
import { loadAgentFile } from "../../../src/cli/job/agent-file.ts";
import { sqliteStores } from "../../../src/stores/sqlite.ts";
import { troupe } from "../support/in-process.ts";

let folder = "";
let store = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "troupe-replay-cli-"));
  store = join(folder, "jobs.db");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const sources = {
  troupe: pathToFileURL(join(import.meta.dirname, "../../../src/index.ts")).href,
  testing: pathToFileURL(join(import.meta.dirname, "../../../src/testing/index.ts")).href,
};

/** An agent file whose clerk has this prompt, and asks for an approval if the input says so. */
function agentFile(name: string, { prompt = "Be brief.", pays = true } = {}): string {
  const path = join(folder, `${name}.ts`);
  writeFileSync(
    path,
    `import { defineAgent, defineTool } from ${JSON.stringify(sources.troupe)};
import { scriptedModel } from ${JSON.stringify(sources.testing)};
import { z } from ${JSON.stringify(import.meta.resolve("zod"))};
const parameters = z.object({});
const look = defineTool({ name: "look", description: "Looks.", parameters, execute: () => "seen" });
const pay = defineTool({ name: "pay", description: "Pays.", parameters, needsApproval: true, execute: () => "paid" });
const model = scriptedModel(({ messages }) => {
  const last = messages.at(-1);
  return last.role === "user" ? { toolCalls: [{ name: last.content }] } : "done";
});
const tools = ${pays ? "[look, pay]" : "[look]"};
export default defineAgent({ name: "clerk", model, instructions: ${JSON.stringify(prompt)}, tools });
`,
  );
  return path;
}

async function recorded(file: string, inputs: Readonly<Record<string, string>>): Promise<void> {
  const { agents } = await loadAgentFile(file, folder);
  const runtime = await createRuntime({ agents, stores: sqliteStores(store) });
  for (const [agentId, input] of Object.entries(inputs)) {
    const agent = await runtime.agent("clerk", { agentId });
    await agent.start();
    await agent.executeTurn(input).settled;
  }
  await runtime.shutdown();
}

describe("troupe replay", () => {
  it("exits with 0 for an equal run, from a store and from a file", async () => {
    const agents = agentFile("before");
    await recorded(agents, { desk: "look" });
    const { code, out } = await troupe(["replay", "desk", "--agents", agents, "--store", store]);
    expect(out).toEqual(["desk: equal", "  compared: 2 requests, 1 tool call, 0 runs of hooks (1 agent, 1 turn)"]);
    expect(code).toBe(0);
    const file = join(folder, "run.json");
    await troupe(["export", "desk", "--json", file, "--store", store]);
    const json = await troupe(["replay", file, "--agents", agents, "--json"]);
    expect(json.code).toBe(0);
    expect(JSON.parse(json.out[0] ?? "")).toMatchObject({ isEqual: true, rootAgentId: "desk", requests: 2 });
  });

  it("exits with 1 for a run that diverges, and shows where and how", async () => {
    await recorded(agentFile("before"), { desk: "look" });
    const agents = agentFile("after", { prompt: "Be long." });
    const { code, out } = await troupe(["replay", "desk", "--agents", agents, "--store", store]);
    expect(code).toBe(1);
    expect(out[0]).toBe("desk: diverges");
    expect(out.slice(-3)).toEqual(["clerk (desk), turn 1, step 1: system prompt", "  - Be brief.", "  + Be long."]);
    const json = await troupe([
      "replay",
      "desk",
      "--agents",
      agents,
      "--store",
      store,
      "--json",
      "--hooks",
      "recorded",
    ]);
    expect(json.code).toBe(1);
    expect(JSON.parse(json.out[0] ?? "")).toMatchObject({ isEqual: false, part: "system prompt", got: "Be long." });
  });

  it("exits with 2 and the reason for everything that cannot be replayed", async () => {
    const agents = agentFile("before");
    await recorded(agents, { desk: "look" });
    const file = join(folder, "names.json");
    await troupe(["export", "desk", "--json", file, "--names-only", "--store", store]);
    writeFileSync(join(folder, "broken.json"), "{}");
    for (const [words, reason] of [
      [["nobody", "--agents", agents, "--store", store], "nobody"],
      [["desk", "--agents", join(folder, "none.ts"), "--store", store], "there is no file"],
      [["desk", "--store", store], "--agents"],
      [["desk", "--agents", agents, "--store", join(folder, "none.db")], "there is no store"],
      [["desk", "--agents", agents, "--store", store, "--hooks", "maybe"], "--hooks"],
      [[file, "--agents", agents], "--names-only"],
      [[join(folder, "broken.json"), "--agents", agents], "invalid run"],
      [[join(folder, "gone.json"), "--agents", agents], "gone.json"],
      [["--agents", agents], "run"],
    ] as const) {
      const { code, out, notes } = await troupe(["replay", ...words]);
      expect([code, out, notes.join("\n")]).toEqual([2, [], expect.stringContaining(reason)]);
    }
  });
});

describe("a file that somebody else wrote", () => {
  async function exported(): Promise<{ file: string; agents: string; text: string }> {
    const agents = agentFile("before");
    await recorded(agents, { desk: "look" });
    const file = join(folder, "run.json");
    await troupe(["export", "desk", "--json", file, "--store", store]);
    return { file, agents: agentFile("after", { prompt: "Be long." }), text: readFileSync(file, "utf8") };
  }

  it("moves no cursor and renames no window: names and texts are printed without escape sequences", async () => {
    const { file, agents, text } = await exported();
    const escape = String.raw`\u001b]0;owned\u0007\u001b[2J`;
    for (const [what, by] of [
      ['"name":"clerk"', `"name":"clerk${escape}"`],
      ['"desk', `"desk${escape}`],
      ["Be brief.", `Be brief.${escape}`],
      ['"name":"look"', `"name":"look${escape}"`],
    ] as const) {
      const json = JSON.stringify(JSON.parse(text));
      expect(json).toContain(what);
      writeFileSync(file, json.replaceAll(what, by));
      const { code, out, notes } = await troupe(["replay", file, "--agents", agents]);
      expect(code).toBeGreaterThan(0);
      expect([...out, ...notes].join("").match(/[\u001b\u0007]/)).toBeNull();
      const forked = await troupe(["fork", file, "--at", "1:1", "--agents", agents]);
      expect([...forked.out, ...forked.notes].join("").match(/[\u001b\u0007]/)).toBeNull();
    }
  });

  it("is refused if its agents or accounts are above themselves, or belong elsewhere", async () => {
    const { file, agents, text } = await exported();
    type Run = {
      runId: string;
      agents: { record: { agentId: string; parentAgentId: string | null } }[];
      accounts: { id: string; parentId: string | null }[];
      rows: { agentId: string; cursor: number }[];
    };
    for (const [change, reason] of [
      [({ agents: [one] }: Run) => one && (one.record.parentAgentId = "desk"), "comes before its parent desk"],
      [({ agents: [one] }: Run) => one && (one.record.agentId = "other"), "its root agent is missing"],
      [({ accounts: [one] }: Run) => one && (one.parentId = one.id), "is above itself"],
      [({ rows: [one] }: Run) => one && (one.agentId = "gone"), "belongs to agent gone, which is missing"],
      [({ rows: [one] }: Run) => one && (one.cursor = 1_000), "comes after row 1000"],
    ] as const) {
      const run = JSON.parse(text) as Run;
      change(run);
      writeFileSync(file, JSON.stringify(run));
      for (const words of [
        ["replay", file],
        ["fork", file, "--at", "1:1"],
      ]) {
        const { code, notes } = await troupe([...words, "--agents", agents]);
        expect([code, notes.join("\n")]).toEqual([2, expect.stringContaining(reason)]);
      }
    }
  });

  it("has any number of differences: the diff stays short", async () => {
    const { file, agents, text } = await exported();
    const lines = Array.from({ length: 20_000 }, (_, index) => `line ${index} ${"x".repeat(300)}`).join(String.raw`\n`);
    writeFileSync(file, text.replaceAll("Be brief.", lines));
    const { code, out } = await troupe(["replay", file, "--agents", agents]);
    expect(code).toBe(1);
    expect(out.length).toBeLessThan(100);
    expect(Math.max(...out.map((line) => line.length))).toBeLessThan(300);
  });
});

describe("troupe check-upgrade", () => {
  it("exits with 0 if all runs ask the same and all open turns go on", async () => {
    const agents = agentFile("before");
    await recorded(agents, { one: "look", open: "pay" });
    const { code, out } = await troupe(["check-upgrade", "--agents", agents, "--store", store]);
    expect(out).toEqual(["2 runs: 2 ask the same, 0 ask something else", "", "1 of 1 open turn can go on"]);
    expect(code).toBe(0);
  });

  it("exits with 1 with the causes, a sample of each, and the tools that open turns lack", async () => {
    await recorded(agentFile("before"), { one: "look", two: "look", open: "pay" });
    const agents = agentFile("after", { prompt: "Be long.", pays: false });
    const { code, out } = await troupe(["check-upgrade", "--agents", agents, "--store", store]);
    expect(code).toBe(1);
    const text = out.join("\n");
    expect(text).toContain("3 runs: 0 ask the same, 3 ask something else");
    expect(text).toMatch(
      /system prompt of clerk: 3 runs, from step 1 \(3\); for instance in \w+:\n {2}clerk \(\w+\), turn 1, step 1/,
    );
    expect(text).toContain("    - Be brief.\n    + Be long.");
    expect(text).toContain("0 of 1 open turn can go on\n  open#1 (clerk) lacks a tool: pay");
    const json = await troupe(["check-upgrade", "--agents", agents, "--store", store, "--last", "1", "--json"]);
    expect(json.code).toBe(1);
    expect(JSON.parse(json.out[0] ?? "")).toMatchObject({ runs: 1, different: 1 });
  });

  it("exits with 2 and the reason if nothing can be checked", async () => {
    const agents = agentFile("before");
    await recorded(agents, { one: "look" });
    for (const [words, reason] of [
      [["--store", store], "--agents"],
      [["--agents", agents, "--store", join(folder, "none.db")], "there is no store"],
      [["--agents", agents, "--store", store, "--last", "0"], "--last"],
      [["--agents", agents, "--store", store, "--last", "many"], "--last"],
      [["--agents", agents, "--store", store, "--hooks", ""], "--hooks"],
    ] as const) {
      const { code, out, notes } = await troupe(["check-upgrade", ...words]);
      expect([code, out, notes.join("\n")]).toEqual([2, [], expect.stringContaining(reason)]);
    }
  });
});
