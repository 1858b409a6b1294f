// What is wrong with a command line of `serve` is said in one line, before anything is opened.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { repositoryRoot } from "../../../scripts/run-command.ts";
import { troupe } from "../support/in-process.ts";

let folder = "";
beforeAll(() => {
  // Inside the repository, where `import "troupe"` finds the package.
  folder = mkdtempSync(join(repositoryRoot, ".troupe", "serve-"));
  const files = {
    "agent.ts": agent,
    "agent.yaml": yaml,
    "newer.yaml": yaml.replace("v1alpha1", "v9"),
    "wrong.yaml": wrong,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const agent = `import { defineAgent, offlineModel } from "troupe";
export default defineAgent({ name: "clerk", model: offlineModel() });
`;
const yaml = `apiVersion: tealagents/v1alpha1
name: MathAgent
version: 0.1
description: It adds.
spec:
  agent:
    name: default
    model: offline
    system_prompt: You add.
`;
const wrong = yaml.replace("system_prompt: You add.", "system_prompt: You add.\n    temperature: warm");

const wordsIn = (words: readonly string[]): string[] =>
  words.map((word) => (/\.(ts|yaml|db)$/.test(word) ? join(folder, word) : word));

test.each<[string, readonly string[], RegExp]>([
  ["no file", [], /missing required argument 'files'/],
  ["a missing agent file", ["nowhere.ts"], /there is no file .*nowhere\.ts; give the path of an agent file/],
  ["a missing YAML file", ["nowhere.yaml"], /nowhere\.yaml.* there is no such file/],
  ["a YAML field of a wrong kind", ["wrong.yaml"], /wrong\.yaml.*spec\.agent\.temperature/],
  ["an unknown apiVersion", ["newer.yaml"], /newer\.yaml.*apiVersion/],
  [
    "no token off loopback",
    ["agent.ts", "--auth", "none", "--host", "0.0.0.0"],
    /--auth none .* take --auth token or entra/,
  ],
  ["a kind of access that there is not", ["agent.ts", "--auth", "magic"], /--auth.*token, entra, none/],
  ["no port", ["agent.ts", "--port", "70000"], /--port.*from 1 to 65535/],
  ["no origin", ["agent.ts", "--cors", "https://a.example/path"], /is no origin/],
  ["workers without Redis", ["agent.ts", "--on", "workers"], /--on workers takes agents in Redis/],
  ["plugins of no YAML file", ["agent.ts", "--plugins", "x.ts"], /--plugins is for agents of YAML files/],
  ["a short token", ["agent.ts"], /TROUPE_SERVE_TOKEN is shorter than 16 characters/],
  ["no tenant", ["agent.ts", "--auth", "entra"], /TROUPE_ENTRA_TENANT is not set/],
  ["two agents of one name", ["agent.ts", "agent.ts"], /two .*"clerk"/],
])("%s", async (_, words, told) => {
  const { code, out, notes } = await troupe(["serve", ...wordsIn([...words, "--store", "jobs.db"])], {
    TROUPE_SERVE_TOKEN: "short",
  });
  expect({ code, out }).toEqual({ code: 2, out: [] });
  expect(notes.join("\n")).toMatch(told);
  expect(notes).toHaveLength(1);
  expect(existsSync(join(folder, "jobs.db"))).toBe(false);
});

test("a taken port", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => taken.once("listening", resolve));
  const { port } = taken.address() as AddressInfo;
  try {
    const words = ["serve", ...wordsIn(["agent.ts", "--store", "jobs.db"]), "--port", String(port)];
    const { code, notes } = await troupe(words);
    expect(code).toBe(2);
    expect(notes).toEqual([expect.stringMatching(new RegExp(`port ${port} of 127\\.0\\.0\\.1 is taken`))]);
  } finally {
    taken.close();
  }
});

test.each([
  [["ask", "--port", "0"], /--port is for --serve/],
  [["ask", "--serve", "--json"], /--json does not go with --serve/],
  [["ask", "--serve", "--resume"], /--resume does not go with --serve/],
])("%j", async (words, told) => {
  const { code, notes } = await troupe(words);
  expect(code).toBe(2);
  expect(notes.join("\n")).toMatch(told);
});
