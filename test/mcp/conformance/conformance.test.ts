import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createRuntime, defineAgent } from "troupe";
import { serveMcp } from "troupe/mcp/server";
import { openAuth } from "troupe/server";
import { scriptedModel } from "troupe/testing";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { startProgram } from "../../support/waiting-process.ts";
import { serve } from "../served-desk.ts";
import { type ClientScenario, playScenario } from "./client.ts";

const suite = fileURLToPath(import.meta.resolve("@modelcontextprotocol/conformance/dist/index.js"));
const forward = join(import.meta.dirname, "forward.ts");
const file = join(import.meta.dirname, "expected-failures.yaml");
const expected = parse(readFileSync(file, "utf8")) as Readonly<Record<"client" | "server", readonly string[]>>;

interface Scenario {
  readonly name: string;
  readonly failed: number;
}

/** The scenarios of one version of the protocol, run by the official suite. */
async function scenariosOf(role: "client" | "server", version: string, words: readonly string[]): Promise<Scenario[]> {
  const folder = mkdtempSync(join(tmpdir(), "troupe-conformance-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const program = startProgram(suite, [role, "--suite", "all", "--spec-version", version, "-o", folder, ...words]);
  onTestFinished(() => program.kill());
  const { stdout } = await program.ended;
  const results = stdout.matchAll(/^[✓✗] (\S+): \d+ passed, (\d+) failed/gmu);
  return [...results].map(([, name = "", failed]) => ({ name, failed: Number(failed) }));
}

/** Exactly the listed scenarios fail. */
function expectListed(role: "client" | "server", scenarios: readonly Scenario[]): void {
  const failing = scenarios.filter(({ failed }) => failed > 0).map(({ name }) => name);
  const listed = scenarios.filter(({ name }) => expected[role].includes(name)).map(({ name }) => name);
  expect(failing).toEqual(listed);
}

test.each([
  ["2025-11-25", 19],
  ["2026-07-28", 33],
])("an agent with the tools of a server, client scenarios of %s", async (version, count) => {
  // All scenarios run at once: a process that loads everything for each of them would be slow.
  const { url } = await serve(async (request) => {
    try {
      return new Response(await playScenario((await request.json()) as ClientScenario));
    } catch (error) {
      return new Response(String(error), { status: 500 });
    }
  });
  const scenarios = await scenariosOf("client", version, ["--timeout", "60000", "--command", `node ${forward} ${url}`]);
  expect(scenarios).toHaveLength(count);
  expectListed("client", scenarios);
});

test.each([
  ["2025-11-25", 33],
  ["2026-07-28", 40],
])("an agent as the tool of a server, server scenarios of %s", async (version, count) => {
  const words = "This is a simple text response for testing.";
  const definition = defineAgent({ name: "test_simple_text", model: scriptedModel(() => words) });
  const runtime = await createRuntime({ agents: [definition] });
  onTestFinished(() => runtime.shutdown());
  const agents = [{ definition, description: "Answers." }];
  const serving = await serveMcp(runtime, { agents, authenticate: openAuth() });
  onTestFinished(() => serving.close());
  const { url } = await serving.listen();
  const scenarios = await scenariosOf("server", version, ["--url", `${url}/mcp`]);
  expect(scenarios).toHaveLength(count);
  expectListed("server", scenarios);
});
