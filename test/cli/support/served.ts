import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished } from "vitest";
import { repositoryRoot, sourceCondition } from "../../../scripts/run-command.ts";

const agentFile = `
import { defineAgent, defineTool } from ${JSON.stringify(join(repositoryRoot, "src/index.ts"))};
import { scriptedModel } from ${JSON.stringify(join(repositoryRoot, "src/testing/index.ts"))};
import { z } from ${JSON.stringify(join(repositoryRoot, "node_modules/zod/index.js"))};
const pay = defineTool({
  name: "pay", description: "Pays.", parameters: z.object({ to: z.string() }), effect: "keyed",
  needsApproval: true, execute: () => "paid",
});
const model = (answer) => scriptedModel(({ messages }) =>
  messages.at(-1).role === "tool" ? answer : { toolCalls: [{ name: "pay", arguments: { to: "Ann" } }] });
export const agents = [
  defineAgent({ name: "greeter", model: scriptedModel("Good day.") }),
  defineAgent({ name: "clerk", model: model("Ann is paid."), tools: [pay] }),
];
`;

export interface Served {
  /** The URL of the page, with its token; the reason in brackets if there is none. */
  readonly url: string;
  readonly origin: string;
  /** The output until then. */
  readonly lines: readonly string[];
}

/** A server in its own process, until the test ends it; it must exit with 0. */
export async function served(words: readonly string[], given: NodeJS.ProcessEnv = {}): Promise<Served> {
  const folder = mkdtempSync(join(tmpdir(), "troupe-served-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "agents.ts");
  writeFileSync(file, agentFile);
  const main = join(repositoryRoot, "src/cli/main.ts");
  const env = { ...process.env, TROUPE_SERVE_TOKEN: undefined, TROUPE_REDIS: undefined, ...given };
  const all = [`--conditions=${sourceCondition}`, main, "serve", file, "--port", "0", "--store", "serve.db", ...words];
  const server = spawn(process.execPath, all, { cwd: folder, env, stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(async () => expect(await left(server)).toBe(0));
  const lines: string[] = [];
  for await (const line of createInterface(server.stdout)) {
    lines.push(line);
    if (line === "Try:" || line.startsWith("  Page: none")) break;
  }
  const url = lines.find((line) => line.startsWith("  Page: "))?.slice("  Page: ".length) ?? "";
  const [origin = ""] = /http:\/\/[^;]+/.exec(lines[0] ?? "") ?? [];
  return { url, origin, lines };
}

async function left(server: ChildProcess): Promise<number | null> {
  const ended = new Promise<number | null>((resolve) => server.once("exit", resolve));
  server.kill("SIGTERM");
  return await ended;
}
