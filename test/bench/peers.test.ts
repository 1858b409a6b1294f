import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Contender } from "../../bench/contender.ts";
import { studyOf } from "../../bench/conversations.ts";
import { help, readOptions } from "../../bench/options.ts";
import { type Peer, peerNames, takingPart } from "../../bench/peers/index.ts";
import { installPackages, loadPackages } from "../../bench/peers/install.ts";
import { jsonLine, rowsOf, runHead, table } from "../../bench/report.ts";
import { sidesOf } from "../../bench/rounds.ts";
import { scenarios } from "../../bench/scenario.ts";
import { studies } from "../../bench/studies/index.ts";

const [scenario] = scenarios;
if (scenario === undefined) throw new Error("There is no scenario.");

const chosen = (only: string): readonly string[] => readOptions(["--only", only]).chosen.map(({ name }) => name);

describe("options", () => {
  test("names the peers, each once, and none by default", () => {
    expect(readOptions(["--with", "langgraph, ai,ai"]).peers).toEqual(["langgraph", "ai"]);
    expect(readOptions([]).peers).toEqual([]);
    for (const name of peerNames) expect(help).toContain(name);
  });

  test.each(["nonsense", "ai,nonsense", "", "ai,"])("an unknown peer is refused: %j", (list) => {
    expect(() => readOptions(["--with", list])).toThrow(
      /^--with: there is no peer "(nonsense)?"\. There are: ai, openai-agents, langgraph\.$/,
    );
  });

  test("peers are excluded from a comparison of the bare sides with themselves", () => {
    expect(() => readOptions(["--self", "--with", "ai"])).toThrow("leave out one of the two");
  });

  test("studies are chosen by name or by group", () => {
    expect(chosen("scenarios")).toEqual(scenarios.map(({ name }) => name));
    expect(chosen("growth")).toEqual(["growth-turns", "growth-agents", "growth-children", "growth-tools"]);
    expect(chosen("growth-tools, loop-10")).toEqual(["loop-10", "growth-tools"]);
    expect(readOptions([]).chosen).toEqual(studies);
    expect(() => chosen("growth-nothing")).toThrow('--only: there is no scenario "growth-nothing".');
  });
});

const contender: Contender = {
  name: "other",
  prepare: async () => ({ open: () => ({ turn: async () => "" }), close: async () => undefined }),
};

const lacks: NonNullable<Peer["lacks"]> = ({ agent }) => (agent === "plain" ? "it has no turns" : undefined);

describe("a peer", () => {
  test("is next to ours and bare, in the table and in the JSON", async () => {
    const study = studyOf(scenario, [contender]);
    const pairs = await study.pairs(true);
    const samples = new Map(sidesOf(pairs).map((side, index) => [side, [{ value: index + 1, processorMs: 1 }]]));
    const rows = rowsOf(study, pairs, samples);
    const lines = table(rows).split("\n");
    expect(lines.slice(1).map((line) => line.split(/\s+/).slice(0, 2))).toEqual([
      ["turns-1", "memory"],
      ["turns-1", "sqlite"],
      ["turns-1", "other"],
    ]);
    const {
      scenarios: written,
      versions,
      quick,
    } = JSON.parse(jsonLine(rows, runHead(true, [{ name: "other", version: "1.2.3" }])));
    expect({ versions, quick }).toEqual({
      versions: { troupe: expect.stringMatching(/^\d/), node: process.versions.node, other: "1.2.3" },
      quick: true,
    });
    expect(written.at(-1)).toMatchObject({ name: "turns-1", stores: "none", contender: "other", ours: 4, bare: 1 });
    expect(written.filter((row: object) => "contender" in row)).toHaveLength(1);
  });

  test("that does not support a scenario is left out, with the reason", () => {
    const peer = { name: "other", version: "1.2.3", contender, lacks };
    expect(takingPart([peer], { name: "turns-1", scenario })).toEqual({
      able: [],
      lines: ["turns-1: without other: it has no turns"],
    });
    const tools = scenarios.find(({ agent }) => agent === "tools");
    if (tools === undefined) throw new Error("No scenario has tools.");
    expect(takingPart([peer], { name: tools.name, scenario: tools })).toEqual({ able: [peer], lines: [] });
  });

  test("takes part in scenarios only, and reports this", () => {
    const peer = { name: "other", version: "1.2.3", contender };
    const { able, lines } = takingPart([peer], { name: "persisted" });
    expect({ able, lines }).toEqual({
      able: [],
      lines: ["persisted: without other: peers take part in the scenarios only"],
    });
    expect(takingPart([], { name: "persisted" }).lines).toEqual([]);
  });
});

/** A program in place of npm, which writes its arguments to a file before it runs this code. */
function program(code: string) {
  const root = mkdtempSync(join(tmpdir(), "troupe-peers-test-"));
  const npm = join(root, "npm.mjs");
  const calls = join(root, "calls");
  writeFileSync(
    npm,
    `#!/usr/bin/env node\nimport { appendFileSync } from "node:fs";\nappendFileSync(${JSON.stringify(calls)}, process.argv.slice(2).join(" ") + "\\n");\n${code}\n`,
  );
  chmodSync(npm, 0o755);
  return { options: { root: join(root, "peers"), npm }, calls: () => readFileSync(calls, "utf8").trim().split("\n") };
}

describe("installing", () => {
  const wanted = { "some-library": "1.2.3" };

  test("runs once for the same versions, and again for others", async () => {
    const { options, calls } = program("");
    const folder = await installPackages("other", wanted, options);
    expect(await installPackages("other", wanted, options)).toBe(folder);
    expect(calls()).toEqual([expect.stringContaining(`install --prefix ${folder} --ignore-scripts`)]);
    expect(JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).dependencies).toEqual(wanted);
    await installPackages("other", { "some-library": "1.2.4" }, options);
    expect(calls()).toHaveLength(2);
  });

  test("that fails reports the command and npm's output, and is tried again", async () => {
    const { options, calls } = program(`console.error("npm error code ENOTFOUND"); process.exit(1);`);
    const attempt = () => installPackages("other", wanted, options);
    await expect(attempt()).rejects.toThrow(
      /^--with other: some-library@1\.2\.3 could not be installed\. Tried: .*npm\.mjs install --prefix [^]*npm error code ENOTFOUND[^]*without it leave out --with\.$/,
    );
    await expect(attempt()).rejects.toThrow("could not be installed");
    expect(calls()).toHaveLength(2);
  });

  test("returns modules by their names, as if imported in that folder", async () => {
    const folder = mkdtempSync(join(tmpdir(), "troupe-peers-test-"));
    const library = join(folder, "node_modules", "@some", "library");
    mkdirSync(library, { recursive: true });
    writeFileSync(
      join(library, "package.json"),
      JSON.stringify({ type: "module", exports: { "./part": "./part.js" } }),
    );
    writeFileSync(join(library, "part.js"), "export const answer = 42;");
    const packages = await loadPackages(folder, ["@some/library/part"]);
    expect(packages["@some/library/part"]).toMatchObject({ answer: 42 });
    expect(existsSync(join(folder, "packages.mjs"))).toBe(true);
  });
});
