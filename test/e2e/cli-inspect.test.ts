// `inspect` and `export`: runs in a browser and in files; and --inspect, whose page stays after the job.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync, statSync } from "node:fs";
import promises from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { repositoryRoot } from "../../scripts/run-command.ts";
import { createRuntime } from "../../src/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { troupe } from "../cli/support/in-process.ts";
import { watchedTeam } from "../inspector/team.ts";
import { startOnTerminal } from "../support/on-terminal.ts";
import { startCli } from "./cli-process.ts";

const folder = mkdtempSync(join(tmpdir(), "troupe-inspect-"));
const store = join(folder, "runs.db");
const canary = "canary-51d0";
afterAll(() => rmSync(folder, { recursive: true, force: true }));

beforeAll(async () => {
  const runtime = await createRuntime({ agents: [watchedTeam()], stores: sqliteStores(store) });
  const agent = await runtime.agent("lead", { agentId: "desk" });
  await agent.start();
  await agent.executeTurn(`Look at ${canary}.`).result;
  await runtime.shutdown();
  await troupe(["export", "desk", "--store", store, "--json", join(folder, "run.json")]);
});

/** The page of a command until the test ends; Ctrl-C ends the command with 0. */
async function inspected(words: readonly string[]) {
  const command = startCli(folder, ["inspect", ...words]);
  onTestFinished(async () => {
    command.signal("SIGINT");
    expect((await command.ended).code).toBe(0);
  });
  const line = await command.line((one) => one.startsWith("Inspect "));
  return askAt(line.split(" at ")[1] ?? "");
}

function askAt(url: string) {
  const [origin = "", token = ""] = url.split("/#token=");
  const headers = { authorization: `Bearer ${token}` };
  return async (path: string): Promise<unknown> => await (await fetch(`${origin}/api${path}`, { headers })).json();
}

test.each([
  ["a store", ["desk", "--store", store], { source: "store", scope: "act", run: "desk", namesOnly: false }],
  ["all runs of a store", ["--store", store], { source: "store", scope: "act" }],
  ["a store, read-only", ["desk", "--store", store, "--read-only"], { source: "store", scope: "watch" }],
  ["a store, names only", ["desk", "--store", store, "--names-only"], { source: "store", namesOnly: true }],
  ["a file", ["run.json"], { source: "file", scope: "watch", run: "desk" }],
])("inspect shows %s until Ctrl-C", async (_what, words, info) => {
  const ask = await inspected(words);
  expect(await ask("/info")).toMatchObject(info);
  expect(await ask("/runs")).toMatchObject({ items: [{ runId: "desk", name: "lead", stopReason: "completed" }] });
  const messages = JSON.stringify(await ask("/runs/desk/agents/desk/messages"));
  expect(messages.includes(canary)).toBe(!words.includes("--names-only"));
});

const place = (name: string): string => join(folder, name);
const exporting = (...words: readonly string[]) => troupe(["export", "desk", "--store", store, ...words]);

describe("export", () => {
  test("writes the run, the page and the trace", async () => {
    const files = [place("all.json"), place("all.html"), place("all-trace.json")] as const;
    const { code, out } = await exporting("--json", files[0], "--html", files[1], "--trace", files[2]);
    expect({ code, out: out.toSorted() }).toEqual({ code: 0, out: files.map((file) => `Written: ${file}`).toSorted() });
    for (const file of files) expect(statSync(file).mode & 0o777).toBe(0o600);
    const [json, html, trace] = files.map((file) => readFileSync(file, "utf8"));
    expect(JSON.parse(json ?? "")).toMatchObject({ format: "troupe.run/1", runId: "desk", namesOnly: false });
    expect(JSON.parse(trace ?? "")).toHaveProperty("traceEvents");
    expect(html).toContain("default-src 'none'; script-src 'sha256-");
    // The script sets addresses of links; no element loads a file.
    expect(html?.replace(/<script type="module">[\s\S]*<\/script>/, "")).not.toMatch(/(?:src|href)=/);
  });

  test("leaves out contents with --names-only", async () => {
    expect(await exporting("--json", place("names.json"), "--names-only")).toMatchObject({ code: 0 });
    expect(readFileSync(place("names.json"), "utf8")).not.toContain(canary);
  });

  test("overwrites a file with --force only", async () => {
    writeFileSync(place("mine.html"), "mine");
    const { code, notes } = await exporting("--html", place("mine.html"));
    expect({ code, notes }).toEqual({ code: 2, notes: [expect.stringMatching(/mine\.html exists; .*--force/)] });
    expect(readFileSync(place("mine.html"), "utf8")).toBe("mine");
    expect(await exporting("--html", place("mine.html"), "--force")).toMatchObject({ code: 0 });
    expect(readFileSync(place("mine.html"), "utf8")).toContain("<!doctype html>");
  });

  test("prints how to build the page if it is missing", async () => {
    const { readFile } = promises;
    onTestFinished(() => {
      promises.readFile = readFile;
      syncBuiltinESMExports();
    });
    promises.readFile = (async () => {
      throw new Error("ENOENT");
    }) as unknown as typeof readFile;
    syncBuiltinESMExports();
    const { code, notes } = await exporting("--html", place("unbuilt.html"));
    expect({ code, notes }).toEqual({ code: 2, notes: [expect.stringContaining("npm run build:ui")] });
    expect(readdirSync(folder)).not.toContain("unbuilt.html");
  });
});

describe("an input that cannot be shown or written is one line and exit code 2, and leaves no file", () => {
  test.each([
    ["no output file", ["export", "desk", "--store", store], /give the file to write/],
    ["an unknown run", ["export", "nobody", "--store", store, "--html", join(folder, "no.html")], /nobody/],
    ["a folder", ["export", "desk", "--store", store, "--json", folder], /is a folder/],
    ["a missing folder", ["export", "desk", "--store", store, "--html", join(folder, "a/b.html")], /ENOENT/],
    ["one file twice", ["export", "desk", "--store", store, "--json", "x", "--html", "x"], /the same file/],
    ["an unknown agent", ["inspect", "nobody", "--store", store], /nobody/],
    ["a missing file", ["inspect", join(folder, "none.json")], /none\.json cannot be read/],
    [
      "a file with other content",
      ["inspect", join(repositoryRoot, "package.json")],
      /expected a file of the format troupe\.run\/1/,
    ],
    ["an invalid port", ["inspect", "--port", "70000"], /70000/],
    ["an unknown option", ["inspect", "--colour"], /--colour/],
    ["a missing store", ["inspect", "--store", join(folder, "none.db")], /none\.db/],
  ])("%s", async (_what, words, message) => {
    const before = readdirSync(folder);
    const { code, out, notes } = await troupe(words);
    expect({ code, out, notes }).toEqual({ code: 2, out: [], notes: [expect.stringMatching(message)] });
    expect(readdirSync(folder)).toEqual(before);
  });
});

const greeter = `import { defineAgent } from ${JSON.stringify(join(repositoryRoot, "src/index.ts"))};
import { scriptedModel } from ${JSON.stringify(join(repositoryRoot, "src/testing/index.ts"))};
export const agent = defineAgent({ name: "greeter", model: scriptedModel("Good day.") });
`;

test("--stately also serves the page of Stately's inspector, at the run, next to the page of this server", async () => {
  const file = join(folder, "stately-agent.ts");
  writeFileSync(file, greeter);
  const words = ["run", file, "Hello.", "--agent-id", "hello", "--stately", "--store", join(folder, "stately.db")];
  const job = startOnTerminal(folder, words);
  await job.said(/The page stays open until Ctrl-C\./);
  const [, url = ""] = await job.said(/^Stately's inspector, which receives names, ids and states: (\S+)$/m);
  expect(url).toMatch(/&run=hello$/);
  expect(await (await fetch(url)).text()).toContain("https://stately.ai/inspect");
  const [, page = ""] = await job.said(/^Inspect the agents at (\S+)$/m);
  expect(await askAt(page)("/runs")).toMatchObject({ items: [{ runId: "hello" }] });
  job.signal("SIGINT");
  expect(await job.ended).toBe(0);
});

test("--inspect keeps the page and its agents on a terminal after the job, until Ctrl-C, and exits with the job's code", async () => {
  const file = join(folder, "agent.ts");
  writeFileSync(file, greeter);
  const job = startOnTerminal(folder, ["run", file, "Hello.", "--inspect", "--store", join(folder, "jobs.db")]);
  await job.said(/The page stays open until Ctrl-C\./);
  const [, url = ""] = await job.said(/^Inspect the agents at (\S+)$/m);
  const runs = await askAt(url)("/runs");
  expect(runs).toMatchObject({ items: [{ name: "greeter", stopReason: "completed", task: "Hello.", agents: 1 }] });
  const { items } = runs as { readonly items: readonly { readonly runId: string }[] };
  expect(await askAt(url)("/info")).toMatchObject({ run: items[0]?.runId, acts: "talk" });
  job.signal("SIGINT");
  expect(await job.ended).toBe(0);
});
