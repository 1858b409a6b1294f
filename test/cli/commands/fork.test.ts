// `fork`: another end of a stored run, beside its origin.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { workFolder } from "../../e2e/cli-process.ts";
import { troupe as said } from "../support/in-process.ts";

/** A desk that pays once in a turn. Each payment is a line of its result. */
const desk = `import { defineAgent, defineTool } from "troupe";
import { scriptedModel } from "troupe/testing";
const schema = '{"type":"object","properties":{"order":{"type":"string"}},"required":["order"]}';
let payments = 0;
const refund = defineTool({
  name: "refund", description: "Pays.", parameters: schema, effect: "once",
  execute: ({ order }) => \`refunded \${order}, payment \${(payments += 1)}\`,
});
const model = scriptedModel(({ messages }) => {
  const last = messages.at(-1);
  if (last.role === "user") return { toolCalls: [{ name: "refund", arguments: { order: "7" } }] };
  return \`The desk: \${last.content}\`;
});
export const agent = defineAgent({ name: "desk", model, tools: [refund] });
`;

async function troupe(words: readonly string[]) {
  const { code: exitCode, out, notes } = await said(words, { COLUMNS: "200" });
  return { exitCode, stdout: out.join("\n"), stderr: notes.join("\n") };
}

let folder: ReturnType<typeof workFolder>;
beforeAll(async () => {
  folder = workFolder({ "desk.mjs": desk, "other.mjs": desk.replace('name: "desk"', 'name: "other"') });
  await troupe(["run", at("desk.mjs"), "Refund order 7.", "--agent-id", "run-1", ...store()]);
});
afterAll(() => folder.remove());

const at = (name: string): string => join(folder.path, name);
const store = (): string[] => ["--store", at("jobs.db")];

describe("fork", () => {
  test("prints the fork beside its origin, with costs, and pays nothing", async () => {
    const { exitCode, stdout } = await troupe(["fork", "run-1", "--at", "1:1", ...store()]);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^fork_[-0-9a-f]+: a fork of run-1 at 1:1$/m);
    expect(stdout.match(/The desk: refunded 7, payment 1/g)).toHaveLength(2);
    expect(stdout).toMatch(/^Origin: completed, 2 steps, 1 tool call, \d+ tokens/m);
    expect(stdout).toMatch(/^Fork: completed, 2 steps, 0 tool calls, \d+ tokens/m);
    expect(stdout).toMatch(/^The fork itself used \d+ tokens/m);
  });

  test("runs an allowed tool, and prints JSON", async () => {
    const words = ["fork", "run-1", "--at", "1:1", "--allow", "refund", "--json", ...store()];
    const { stdout } = await troupe(words);
    const shown = JSON.parse(stdout) as { fork: { text: string }; forkedFrom: unknown };
    expect(shown.fork.text).toMatch(/payment [2-9]/);
    expect(shown.forkedFrom).toEqual({ agentId: "run-1", turn: 1, step: 1 });
  });

  test("keeps a fork in the store, where show and list name its origin", async () => {
    const words = ["fork", "run-1", "--at", "1", "--input", "Once more.", "--keep", "--json", ...store()];
    const { agentId } = JSON.parse((await troupe(words)).stdout) as { agentId: string };
    expect((await troupe(["show", agentId, ...store()])).stdout).toContain("A fork of run-1 at 1.");
    expect((await troupe(["list", "--json", ...store()])).stdout).toContain(
      '"forkedFrom":{"agentId":"run-1","turn":1}',
    );
    expect((await troupe(["fork", agentId, "--at", "2:2", ...store()])).stdout).toContain(
      `a fork of ${agentId} at 2:2`,
    );
  });

  test("forks an exported file", async () => {
    await troupe(["export", "run-1", "--json", at("run.json"), ...store()]);
    const { exitCode, stdout } = await troupe(["fork", at("run.json"), "--at", "1:2", "--agents", at("desk.mjs")]);
    expect([exitCode, stdout.includes("a fork of run-1 at 1:2")]).toEqual([0, true]);
  });
});

describe("fork: refused", () => {
  test.each([
    [[], "required option '--at <turn[:step]>' not specified"],
    [["--at", "0:1"], "Expected a turn and a step, as 2:3, or a turn, as 2; both count from 1."],
    [["--at", "1:x"], "Expected a turn and a step"],
    [["--at", "3:1"], 'at names turn 3, step 1, which "run-1" does not have; it can be forked at 1:1 to 1:2, 1'],
    [["--at", "1"], "the fork needs an input"],
    [["--at", "1:1", "--input", " "], "It must not be empty."],
    [["--at", "1:1", "--model", ""], "It must not be empty."],
    [["--at", "1:1", "--allow", "refunds"], 'allow names the tool "refunds"'],
    [["--at", "1:1", "--allow", ""], "It must not be empty."],
    [["--at", "1:1", "--agents", "gone.mjs"], "there is no file gone.mjs"],
    [["--at", "1:1", "--agents", "OTHER"], 'does not export the definition "desk" of run-1'],
    [["--at", "1:1", "--max-steps", "0"], "Expected a whole number of at least 1"],
  ])("%j", async (words, message) => {
    const given = words.map((word) => (word === "OTHER" ? at("other.mjs") : word));
    const { exitCode, stderr } = await troupe(["fork", "run-1", ...given, ...store()]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain(message);
  });

  test("an unknown run, and --keep for a file", async () => {
    expect((await troupe(["fork", "gone", "--at", "1", ...store()])).stderr).toContain('there is no agent "gone"');
    const words = ["fork", at("run.json"), "--at", "1", "--keep"];
    expect((await troupe(words)).stderr).toContain("--keep stores the fork in the store of the run");
  });

  test("a file that is gone or is no run, and a store that is none", async () => {
    const forkOf = async (...words: readonly string[]) => (await troupe(["fork", ...words, "--at", "1:1"])).stderr;
    expect(await forkOf(at("gone.json"))).toContain("gone.json");
    writeFileSync(at("broken.json"), "{}");
    expect(await forkOf(at("broken.json"))).toContain("invalid run");
    expect(await forkOf("run-1", "--store", at("gone.db"))).toContain("there is no store");
    writeFileSync(at("text.db"), "This is no database, but a text that is long enough to be read as one.");
    expect(await forkOf("run-1", "--store", at("text.db"))).toContain("text.db");
    expect(await forkOf("run-1", "--store", "ftp://host/0")).toContain("ftp:");
  });
});
