// `troupe estimate`, with an agent file and a store.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
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
  folder = mkdtempSync(join(tmpdir(), "troupe-estimate-cli-"));
  store = join(folder, "jobs.db");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const sources = {
  troupe: pathToFileURL(join(import.meta.dirname, "../../../src/index.ts")).href,
  testing: pathToFileURL(join(import.meta.dirname, "../../../src/testing/index.ts")).href,
};

function agentFile(name: string, instructions: string): string {
  const path = join(folder, `${name}.ts`);
  writeFileSync(
    path,
    `import { defineAgent } from ${JSON.stringify(sources.troupe)};
import { scriptedModel } from ${JSON.stringify(sources.testing)};
const usage = { inputTokens: 2_000, outputTokens: 300, cachedInputTokens: 1_000 };
const model = scriptedModel(() => ({ text: "done", usage }));
export default defineAgent({ name: "clerk", model, instructions: ${JSON.stringify(instructions)} });
`,
  );
  return path;
}

async function recorded(file: string, turns: number): Promise<void> {
  const { agents } = await loadAgentFile(file, folder);
  const runtime = await createRuntime({ agents, stores: sqliteStores(store) });
  for (let turn = 0; turn < turns; turn += 1) {
    const agent = await runtime.agent("clerk", {});
    await agent.start();
    await agent.executeTurn("hello").settled;
  }
  await runtime.shutdown();
}

describe("troupe estimate", () => {
  it("prints the forecast, its roughness, budgets, and turns of another version", async () => {
    const file = agentFile("now", "Be brief.");
    await recorded(agentFile("before", "Be long."), 2);
    await recorded(file, 3);
    const price = JSON.stringify({ inputPerMillion: 10, outputPerMillion: 100 });

    const words = ["estimate", file, "--input", "hello", "--store", store, "--model", "other", "--price", price];
    const { code, out, notes } = await troupe(words);

    const text = out.join("\n");
    expect(notes).toEqual([]);
    expect(code).toBe(0);
    expect(out[0]).toBe("clerk: 3 recorded turns of today's definitions");
    expect(out[1]).toMatch(/^First prompt for this input: \d+ tokens; recorded: 2k to 2k$/);
    expect(text).toMatch(/^input tokens +2k +- +- +2k/m);
    expect(text).toMatch(/^ {2}of these cached +1k/m);
    expect(text).toMatch(/^cost with other +\$0\.0500/m);
    expect(text).toContain("3 turns: rough figures.");
    expect(text).toContain("The cost of 3 turns is unknown; --model NAME --price JSON gives a price.");
    expect(text).toContain("Stopped by a budget: 0 of 3 (0 %; in general 0 to 56 %)");
    expect(text).toContain("  --max-steps 1  0 of 3");
    expect(text).toContain("  --max-cost 0.05  0 of 3");
    expect(text).toMatch(/: 2 turns, changed since: clerk; typical 1 step, 2\.3k tokens/);
  });

  it("prints JSON, and exits with 1 without recorded turns", async () => {
    const file = agentFile("now", "Be brief.");
    await recorded(agentFile("before", "Be long."), 1);

    const { code, out } = await troupe(["estimate", file, "--store", store, "--json"]);

    expect(code).toBe(1);
    expect(JSON.parse(out.join("\n"))).toMatchObject({ agentName: "clerk", runs: 0, others: [{ runs: 1 }] });
    const words = await troupe(["estimate", file, "--store", store]);
    expect(words.out.join("\n")).toContain("There is nothing to forecast from");
  });

  it.each([
    [["--last", "0"], /--last <number>.*whole number from 1/],
    [["--input", " "], /--input.*must not be empty/],
    [["--model", ""], /--model.*must not be empty/],
    [["--price", '{"inputPerMillion":1,"outputPerMillion":2}'], /--price is the price of another model/],
    [["--model", "x", "--price", "5"], /--price.*Expected a JSON object/],
    [["--model", "x", "--price", "{}"], /whatIf: price.*expected dollars per million tokens|price.*is not valid/],
    [["--model", "nowhere"], /no known price of "nowhere"/],
    [["--agent", "other"], /exports no agent "other"/],
    [["--budget", "5"], /unknown option '--budget'/],
  ])("refuses %j", async (words, message) => {
    const file = agentFile("now", "Be brief.");
    await recorded(file, 1);

    const { code, notes } = await troupe(["estimate", file, "--store", store, ...words]);

    expect(code).toBe(2);
    expect(notes.join("\n")).toMatch(message);
  });

  it("refuses a file or a store that does not exist", async () => {
    const missing = await troupe(["estimate", join(folder, "none.ts"), "--store", store]);
    expect(missing).toMatchObject({ code: 2 });
    const noStore = await troupe(["estimate", agentFile("now", "x"), "--store", join(folder, "none.db")]);
    expect(noStore.notes.join("\n")).toContain("there is no store at");
    expect(noStore.code).toBe(2);
  });

  it.each([
    ["", "It must not be empty."],
    ["none.json", "there is no file none.json"],
    ["wrong.json", "is not valid JSON"],
    ["list.json", "servers is not an object of servers"],
    ["entry.json", "give either command or url"],
  ])("refuses --mcp %j", async (name, words) => {
    writeFileSync(join(folder, "wrong.json"), "{");
    writeFileSync(join(folder, "list.json"), '{"servers":[]}');
    writeFileSync(join(folder, "entry.json"), '{"servers":{"desk":{}}}');
    const path = ["", "none.json"].includes(name) ? name : join(folder, name);
    const { code, notes } = await troupe(["estimate", agentFile("now", "x"), "--store", store, "--mcp", path]);
    expect([code, notes.join("\n")]).toEqual([2, expect.stringContaining(words)]);
  });
});
