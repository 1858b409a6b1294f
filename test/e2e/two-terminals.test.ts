// The commands of docs/serving.md in two terminals: a server is killed in mid-stream, and the stream continues.
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { commandEnvironment, repositoryRoot } from "../../scripts/run-command.ts";
import { blocksOf } from "../support/document-blocks.ts";
import { type CliProcess, startCli, workFolder } from "./cli-process.ts";

const page = "docs/serving.md";
const section = /### In two terminals\n(.*?)\n## /s;

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

/** The commands of the page on a free port. */
async function commands(): Promise<readonly [server: string, ask: string, goOn: string]> {
  const [, text = ""] = section.exec(readFileSync(join(repositoryRoot, page), "utf8")) ?? [];
  const port = await freePort();
  const [server = "", ask = "", goOn = ""] = blocksOf(page, text).map((block) =>
    block.text.replaceAll("8080", `${port}`),
  );
  return [server, ask, goOn];
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => void server.close(() => resolve()));
  return port;
}

/** The first terminal. */
async function serve(folder: string, typed: string): Promise<CliProcess> {
  const [, token = ""] = /export TROUPE_SERVE_TOKEN=(\S+)/.exec(typed) ?? [];
  const [, words = ""] = /^npx troupe (.*)$/m.exec(typed) ?? [];
  const here = words.split(" ").map((word) => (word.startsWith("examples/") ? join(repositoryRoot, word) : word));
  const server = startCli(folder, here, { TROUPE_SERVE_TOKEN: token });
  ends.push(async () => {
    server.signal("SIGKILL");
    await server.ended;
  });
  await server.line((line) => line.startsWith("Try:"));
  return server;
}

/** The second one: a shell with typed input. */
function shell(folder: string) {
  const child = spawn("bash", [], { cwd: folder, env: commandEnvironment({}), stdio: ["pipe", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text));
  const ended = new Promise<number | null>((resolve) => void child.once("close", resolve));
  ends.push(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  return {
    type: (text: string) => child.stdin.write(`${text}\n`),
    leave: () => child.stdin.end(),
    ended,
    said: () => output,
  };
}

test("the commands in two terminals end as the page describes", { timeout: 120_000 }, async () => {
  const folder = workFolder({});
  ends.push(() => folder.remove());
  const [server, ask, goOn] = await commands();
  const first = await serve(folder.path, server);
  const terminal = shell(folder.path);
  terminal.type(ask);
  const heard = (): string => {
    const path = join(folder.path, "heard.txt");
    return existsSync(path) ? readFileSync(path, "utf8") : "";
  };
  await vi.waitUntil(() => heard().includes("event: turn.waiting"), { timeout: 60_000 });
  first.signal("SIGKILL");
  await first.ended;
  await serve(folder.path, server);
  terminal.type(goOn);
  terminal.leave();
  const code = await terminal.ended;
  expect(terminal.said()).toMatch(/The same events\.\n$/);
  expect(code).toBe(0);
  expect(heard()).toContain("event: turn.completed");
});
