// `troupe mcp login | logout`.
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mcpFromConfig, mcpLoginsFromConfig, memoryMcpTokens } from "troupe/mcp";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { repositoryRoot } from "../../../scripts/run-command.ts";
import { type GuardedDesk, openGuarded } from "../../mcp/oauth-server.ts";
import { freePort } from "../../support/redis-server.ts";
import { startProgram } from "../../support/waiting-process.ts";
import { troupe } from "../support/in-process.ts";

/** A configuration with a server that needs a login, and a folder for tokens. */
async function openScene(desk: Pick<GuardedDesk, "url">, oauth: object = {}) {
  const folder = mkdtempSync(join(tmpdir(), "troupe-mcp-login-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const config = join(folder, "mcp.json");
  const redirectUrl = `http://127.0.0.1:${await freePort()}/callback`;
  const own = { auth: { oauth: { redirectUrl, ...oauth } } };
  writeFileSync(config, JSON.stringify({ mcpServers: { desk: { url: desk.url, troupe: own } } }));
  const tokens = join(folder, "tokens");
  const environment = { TROUPE_MCP_TOKENS: tokens };
  return {
    folder,
    tokens,
    config,
    redirectUrl,
    run: async (...words: readonly string[]) => await troupe(["mcp", ...words, "--config", config], environment),
    start: (...words: readonly string[]) => {
      const program = startProgram(
        join(repositoryRoot, "src/cli/main.ts"),
        ["mcp", "login", "desk", "--config", config, ...words],
        environment,
      );
      onTestFinished(() => program.kill());
      return program;
    },
  };
}

test("a login in the browser lasts until the logout; all commands use it", async () => {
  const desk = await openGuarded();
  const scene = await openScene(desk);
  const before = await scene.run("list");
  expect(before.code).toBe(1);
  expect(before.notes.join()).toContain(
    `mcpServers.desk needs a login; run "npx troupe mcp login desk --config ${scene.config}"`,
  );
  const login = scene.start();
  const page = await login.firstLine;
  const guess = await fetch(`${scene.redirectUrl}?code=x&state=guessed`);
  expect([guess.status, (await fetch(new URL("/other", scene.redirectUrl))).status]).toEqual([400, 404]);
  const back = await fetch(await desk.logIn(page, "ann"));
  expect([back.status, await back.text()]).toEqual([200, "You are logged in. You can close this page.\n"]);
  const { code, stdout, stderr } = await login.ended;
  expect([code, stdout]).toEqual([0, `${page}\n`]);
  expect(stderr).toContain(`Logged in to desk; the login is in ${scene.tokens}.`);
  expect((await scene.run("list")).code).toBe(0);
  expect(await scene.run("call", "desk", "echo", "--args", '{"text":"hi"}')).toMatchObject({
    code: 0,
    out: ["echo: hi"],
  });
  expect(desk.users()).toEqual(["ann"]);
  for (const file of readdirSync(scene.tokens)) {
    const path = join(scene.tokens, file);
    expect(statSync(path).mode & 0o077).toBe(0);
    for (const secret of desk.secrets) expect(readFileSync(path, "latin1")).not.toContain(secret);
  }
  expect((await scene.run("logout", "desk")).code).toBe(0);
  expect((await scene.run("list")).code).toBe(1);
});

test.each([
  ["403, for more scopes", { scopes: { echo: "more" } }, { approvedEarly: 4, isNamed: false }],
  ["401, after the login has ended", { isLoginEndedByFirstCall: true }, { approvedEarly: 1, isNamed: true }],
])("a call that gets %s waits for a login, and approve continues the call", async (_answer, options, expected) => {
  const desk = await openGuarded(options);
  const scene = await openScene(desk);
  const first = scene.start();
  await fetch(await desk.logIn(await first.firstLine, "ann"));
  expect((await first.ended).code).toBe(0);
  const file = join(scene.folder, "agent.mjs");
  writeFileSync(
    file,
    `import { defineAgent, offlineModel } from "troupe";
    const generate = async ({ messages }) => {
      const last = messages.at(-1);
      const toolCalls = last.role === "user" ? [{ id: "a", name: "desk__echo", arguments: '{"text":"hi"}' }] : [];
      const content = last.role === "user" ? "" : last.content;
      return { content, toolCalls, usage: { inputTokens: 1, outputTokens: 1 }, finishReason: "stop", model: "x" };
    };
    export const agent = defineAgent({ name: "clerk", model: { ...offlineModel(), generate } });`,
  );
  const store = ["--store", join(scene.folder, "jobs.db")];
  const run = async (...words: readonly string[]) =>
    await troupe([...words, ...store], { TROUPE_MCP_TOKENS: scene.tokens });
  expect((await run("run", file, "go", "--mcp", scene.config, "--quiet")).code).toBe(4);
  expect((await run("approve", "--quiet")).code).toBe(expected.approvedEarly);
  const second = scene.start();
  const page = await second.firstLine;
  const { out } = await run("requests", "--json");
  const { requestId, arguments: shown } = JSON.parse(out.join("")) as { requestId: string; arguments: { url: string } };
  expect(shown.url).toBe(page);
  await fetch(await desk.logIn(page, "ann"));
  expect((await second.ended).code).toBe(0);
  const named = expected.isNamed ? [requestId] : [];
  expect(await run("approve", ...named, "--quiet")).toMatchObject({ code: 0, out: ["echo: hi"] });
  expect(desk.users()).toEqual(["ann"]);
});

test("the command in the error names the file if it is not mcp.json of the working directory", async () => {
  const { config, folder, tokens } = await openScene(await openGuarded());
  const hintFor = async (file: string): Promise<string | undefined> => {
    const { notes } = await troupe(["mcp", "list", "--config", file], { TROUPE_MCP_TOKENS: tokens });
    return /run "([^"]+)"/.exec(notes.join("\n"))?.[1];
  };
  const other = join(folder, "our servers.json");
  cpSync(config, other);
  expect(await hintFor(other)).toBe(`npx troupe mcp login desk --config '${other}'`);
  const usual = vi.spyOn(process, "cwd").mockReturnValue(folder);
  onTestFinished(() => usual.mockRestore());
  expect(await hintFor("mcp.json")).toBe("npx troupe mcp login desk");
  expect(await hintFor(config)).toBe("npx troupe mcp login desk");
});

test("a login that the person refuses, and one that does not come in time", async () => {
  const scene = await openScene(await openGuarded());
  const login = scene.start();
  const state = new URL(await login.firstLine).searchParams.get("state") ?? "";
  await fetch(`${scene.redirectUrl}?error=access_denied&state=${state}`);
  expect(await login.ended).toMatchObject({ code: 1 });
  const late = scene.start("--wait-seconds", "1");
  expect(await late.ended).toMatchObject({ code: 1, stderr: expect.stringContaining("No login within 1 seconds") });
});

describe("what cannot be used", () => {
  test.each([
    [{ store: {} }, /troupe\.auth\.oauth\.store has no place in a file/],
    [{ scope: ["a"] }, /scopes/],
    [{ scopes: "a" }, /auth\.oauth\.scopes/],
    [{ redirectUrl: "http://desk.example.com/callback" }, /auth\.oauth\.redirectUrl/],
    [
      { redirectUrl: "https://desk.example.com/callback" },
      /redirectUrl https:\/\/desk\.example\.com is not http on this/,
    ],
    [{ client: { clientId: "${MISSING_ID}", issuer: "https://a.example.com" } }, /MISSING_ID\}, which is not set/],
  ])("oauth: %j", async (oauth, problem) => {
    const scene = await openScene(await openGuarded(), oauth);
    const { code, notes } = await scene.run("login", "desk");
    expect([code, notes.join()]).toEqual([2, expect.stringMatching(problem)]);
  });

  test("a server without logins, an unknown server, and a number of seconds that is none", async () => {
    const scene = await openScene({ url: "https://desk.example.com/mcp" });
    writeFileSync(scene.config, JSON.stringify({ mcpServers: { plain: { url: "https://desk.example.com/mcp" } } }));
    expect((await scene.run("login", "plain")).notes.join()).toMatch(/people do not log in to this server/);
    expect((await scene.run("login", "desk")).notes.join()).toMatch(/has no server "desk"; it has plain/);
    expect((await scene.run("login", "plain", "--wait-seconds", "soon")).code).toBe(2);
  });

  test("a port that is in use, and a key that is none", async () => {
    const scene = await openScene(await openGuarded());
    const first = scene.start();
    await first.firstLine;
    expect(await scene.run("login", "desk")).toMatchObject({
      code: 2,
      notes: [expect.stringMatching(/cannot listen at .*EADDRINUSE.*redirectUrl/)],
    });
    const words = ["mcp", "login", "desk", "--config", scene.config];
    const wrong = await troupe(words, { TROUPE_MCP_TOKENS: scene.tokens, TROUPE_MCP_TOKEN_KEY: "short" });
    expect([wrong.code, wrong.notes.join()]).toEqual([2, expect.stringMatching(/key must be 32 random bytes/)]);
  });
});

test("programs give a store of their own", async () => {
  const desk = await openGuarded();
  const { config } = await openScene(desk, { scopes: ["desk"] });
  await expect(mcpFromConfig(config)).rejects.toThrow(/auth\.oauth needs a store for tokens; give the option tokens/);
  await expect(mcpFromConfig(config, { tokens: {} as never })).rejects.toThrow(
    /tokens is an object; expected a token store/,
  );
  const tokens = memoryMcpTokens();
  await expect(mcpFromConfig(config, { tokens })).rejects.toThrow(/needs a login/);
  const logins = await mcpLoginsFromConfig(config, "desk", { tokens });
  await logins.finish(await desk.logIn(await logins.begin({ actorId: null }), "ann"), { actorId: null });
  const servers = await mcpFromConfig(config, { tokens });
  onTestFinished(() => servers.close());
  expect(servers.tools.length).toBeGreaterThan(3);
});
