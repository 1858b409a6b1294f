import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execFile } from "node:child_process";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { repositoryRoot } from "../../../scripts/run-command.ts";
import { serveAuth } from "../../../src/cli/serve/serve-auth.ts";
import { serveWebhooks } from "../../../src/cli/serve/serve-webhooks.ts";
import { troupe } from "../support/in-process.ts";

const folder = mkdtempSync(join(tmpdir(), "troupe-serve-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const yaml = join(repositoryRoot, "examples/teal/agent.yaml");
const store = ["--store", join(folder, "serve.db")];

test("serve prints a URL, a token and a working command, and exits on SIGTERM with 0", async () => {
  const words = [join(repositoryRoot, "src/cli/main.ts"), "serve", yaml, "--port", "0", ...store];
  const env = { ...process.env, OPENAI_API_KEY: undefined, TROUPE_SERVE_TOKEN: undefined };
  const server = spawn(process.execPath, words, { cwd: folder, env, stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void server.kill("SIGKILL"));
  const ended = new Promise<number | null>((resolve) => server.once("exit", resolve));
  const lines: string[] = [];
  for await (const line of createInterface(server.stdout)) {
    lines.push(line);
    if (!line.startsWith("  curl ")) continue;
    const { stdout } = await promisify(execFile)("bash", ["-c", line]);
    expect(JSON.parse(stdout)).toMatchObject({ status: "Completed", content: { source: "MathAgent:0.1" } });
    const withoutToken = await promisify(execFile)("bash", ["-c", line.replace(/ -H "authorization[^"]*"/, "")]);
    expect(JSON.parse(withoutToken.stdout)).toEqual({ detail: "Authentication required" });
    server.kill("SIGTERM");
  }
  expect(await ended).toBe(0);
  expect(lines[0]).toMatch(/^Serving MathAgent at http:\/\/127\.0\.0\.1:\d+; agents are stored in /);
  expect(lines).toContainEqual(expect.stringMatching(/^ {2}Teal Agents: http:.*\/MathAgent\/0\.1$/));
  expect(lines).toContainEqual(expect.stringMatching(/^Token: [\w-]{32}$/));
  expect(lines.slice(-2)).toEqual([expect.stringMatching(/^Leaving on SIGTERM/), "Left; nothing was cut off."]);
});

test("callers of Entra ID must be in the configured directory", () => {
  const environment = { TROUPE_ENTRA_TENANT: "directory-1", TROUPE_ENTRA_AUDIENCE: "app-1, app-2" };
  expect(serveAuth("entra", environment)).toMatchObject({ tenant: "directory-1", token: null });
  expect(serveAuth("token", { TROUPE_SERVE_TOKEN: "from-the-environment" })).toMatchObject({ isGiven: true });
});

test("webhooks are signed with the keys of a file, otherwise with those of the environment", async () => {
  const keys = [1, 2].map((value) => Buffer.alloc(32, value).toString("base64"));
  const path = file("two-keys", keys.join("\n"));
  const origins = ["http://hooks.internal:8080"];
  const place = { directory: folder, environment: { TROUPE_WEBHOOK_KEY: keys.toReversed().join(",") } };
  expect(await serveWebhooks({ webhookKeys: path, webhookOrigin: origins }, place)).toEqual({ keys, origins });
  expect(await serveWebhooks({}, place)).toEqual({ keys: keys.toReversed(), origins: undefined });
  expect(await serveWebhooks({}, { ...place, environment: {} })).toBeUndefined();
});

test.each([
  [["--port", "0"], "--port requires --serve"],
  [["--surfaces", "api"], "--surfaces requires --serve"],
  [["--chats", "X-Chat"], "--chats requires --serve"],
  [["--log"], "--log requires --serve"],
  [["--hosts", "a.example.com"], "--hosts requires --serve"],
  [["--webhook-keys", "a"], "--webhook-keys requires --serve"],
  [["--webhook-origin", "a"], "--webhook-origin requires --serve"],
  [["--serve", "--json"], "--json cannot be combined with --serve"],
  [["--serve", "--resume"], "--resume cannot be combined with --serve"],
  [["--serve", "--stately"], "--stately cannot be combined with --serve"],
  [["--serve", "--inspect"], "--inspect cannot be combined with --serve"],
  [["--serve", "--max-cost", "1"], "limits cannot be combined with --serve: each turn has the team's limits"],
])("ask %j is refused", async (words, message) => {
  const { code, out, notes } = await troupe(["ask", ...words, ...store]);
  expect({ code, out }).toEqual({ code: 2, out: [] });
  expect(notes).toEqual([expect.stringContaining(message)]);
});

/** A file in a temporary folder of these tests. */
function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

describe("an invalid configuration is one line and exit code 2, starts nothing, and creates no store", () => {
  const unmade = join(folder, "unmade");
  const busy = createServer();
  let port = 0;
  beforeAll(async () => {
    await new Promise<void>((resolve) => void busy.listen(0, "127.0.0.1", resolve));
    ({ port } = busy.address() as AddressInfo);
  });
  afterAll(() => busy.close());

  test.each([
    ["a used port", () => [yaml, "--port", String(port)], /port \d+ of 127\.0\.0\.1 is taken/],
    ["an invalid header", () => [yaml, "--chats", "a b"], /the name of a header/],
    ["a missing file", () => ["none.yaml"], /there is no file none\.yaml/],
    ["a file of another kind", () => [file("agent.txt", "")], /is not an agent file/],
    [
      "a field of a wrong type",
      () => [
        file(
          "hot.yaml",
          "apiVersion: tealagents/v1alpha1\nname: A\nversion: 1\nspec:\n  agent:\n    model: offline\n    system_prompt: x\n    temperature: hot\n",
        ),
      ],
      /hot\.yaml:8: spec\.agent\.temperature is the text "hot"/,
    ],
    [
      "an unknown version",
      () => [file("old.yaml", "apiVersion: other/v1\n")],
      /old\.yaml:1: apiVersion is "other\/v1"/,
    ],
    [
      "no authentication off loopback",
      () => [yaml, "--auth", "none", "--host", "0.0.0.0", "--port", "0"],
      /only on loopback, not on 0\.0\.0\.0/,
    ],
    ["Entra ID without a directory", () => [yaml, "--auth", "entra"], /TROUPE_ENTRA_TENANT/],
    ["an address of another machine", () => [yaml, "--host", "203.0.113.7", "--port", "0"], /cannot be used/],
    ["workers without Redis", () => [yaml, "--on", "workers"], /--on workers requires agents in Redis or Postgres/],
    [
      "plugins without a file in YAML",
      () => [
        file(
          "agent.mjs",
          `export { agent } from ${JSON.stringify(join(repositoryRoot, "test/cli/serve/served-team.ts"))};`,
        ),
        "--plugins",
        "x.ts",
      ],
      /--plugins and --catalog require an agent in YAML/,
    ],
    ["an unknown authentication", () => [yaml, "--auth", "basic"], /Allowed choices are token, entra, none/],
    [
      "an unknown surface",
      () => [yaml, "--surfaces", "teal,apo"],
      /there is no surface "apo": did you mean api\? available surfaces are api, teal/,
    ],
    [
      "a surface unlike any other",
      () => [yaml, "--surfaces", "gopher"],
      /no surface "gopher"; available surfaces are api, teal/,
    ],
    ["an empty list of surfaces", () => [yaml, "--surfaces", ","], /--surfaces must contain one or more of api, teal/],
    [
      "an invalid webhook key",
      () => [yaml, "--webhook-keys", file("keys", "short\n")],
      /keys: key 1 is invalid; give 32/,
    ],
    ["a file without a webhook key", () => [yaml, "--webhook-keys", file("no-keys", "\n")], /contains no key/],
    ["missing webhook keys", () => [yaml, "--webhook-keys", "none.txt"], /none\.txt cannot be read/],
    ["a webhook origin without a key", () => [yaml, "--webhook-origin", "http://a"], /--webhook-origin needs a key/],
    ["a webhook origin with a path", () => [yaml, "--webhook-origin", "http://a/b"], /http:\/\/a\/b is not an origin/],
    ["an empty file name", () => [], /missing required argument/],
  ])("%s", async (_, words, message) => {
    const { code, out, notes } = await troupe(["serve", ...words(), "--store", join(unmade, "serve.db")]);
    expect({ code, out, notes: notes.length }).toEqual({ code: 2, out: [], notes: 1 });
    expect(notes[0]).toMatch(message);
    expect(existsSync(unmade)).toBe(false);
  });
});
