// Servers of an mcp.json in the format of editors.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { dirname, join, sep } from "node:path";
import {
  checkMcpPins,
  mcpFromConfig,
  mcpLoginsFromConfig,
  McpServerError,
  type McpOptions,
  memoryMcpTokens,
  pinMcp,
} from "troupe/mcp";
import { describe, expect, onTestFinished, test } from "vitest";
import { readMcpConfig } from "../../src/mcp/mcp-config.ts";
import { toolTextsOf } from "../support/journal-probes.ts";
import { anyValues, classicValues, isTaken } from "../support/wrong-values.ts";
import { openScripted } from "./scripted-server.ts";
import { callerOf, openDesk } from "./served-desk.ts";

function write(content: string | object, name = "mcp.json"): string {
  const folder = mkdtempSync(join(tmpdir(), "troupe-config-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

interface Reading {
  readonly environment?: Readonly<Record<string, string>>;
  readonly inputs?: Readonly<Record<string, string>>;
}

/** The options of all servers, or their errors. */
function optionsIn(file: string, { environment = {}, inputs = {} }: Reading = {}): readonly (McpOptions | Error)[] {
  const reading = { environment, inputs, servers: {}, only: undefined, pin: undefined, tokens: undefined };
  return readMcpConfig(file, reading).map(({ options }) => options);
}

function errorOf(entry: object, reading?: Reading): string {
  const [options] = optionsIn(write({ mcpServers: { desk: entry } }), reading);
  expect(options).toBeInstanceOf(Error);
  return (options as Error).message;
}

test("both keys of editors, their types and their fields are read", () => {
  const file = write({
    mcpServers: {
      files: { type: "stdio", command: "npx", args: ["-y", "files"], env: { DEBUG: 1, MODE: "x" }, alwaysAllow: ["a"] },
      docs: { type: "http", url: "https://docs.example.com/mcp", headers: { "X-Team": "a" }, gallery: true },
      old: { type: "sse", url: "https://old.example.com/sse" },
      off: { command: "x", disabled: true },
    },
  });
  expect(optionsIn(file)).toEqual([
    { name: "files", command: "npx", args: ["-y", "files"], env: { DEBUG: "1", MODE: "x" } },
    { name: "docs", url: "https://docs.example.com/mcp", headers: { "X-Team": "a" } },
    { name: "old", url: "https://old.example.com/sse" },
  ]);
  expect(optionsIn(write({ servers: { docs: { url: "https://a.example.com" } } }))).toEqual([
    { name: "docs", url: "https://a.example.com" },
  ]);
});

test("comments, commas at the end, a byte order mark and tabs are read as editors do", () => {
  const text =
    '\uFEFF{\n\t// servers\n\t"servers": {\n\t\t"a": { "url": "https://a.example.com/x//y", }, /* , } */\n\t},\n}\n';
  expect(optionsIn(write(text))).toEqual([{ name: "a", url: "https://a.example.com/x//y" }]);
});

test("options of ours are in a key that editors ignore", () => {
  const file = write({
    mcpServers: {
      "my server": {
        command: "x",
        troupe: {
          name: "mine",
          trust: true,
          approval: "writes",
          tools: { pay: { needsApproval: true, idempotencyArgument: "key" }, remove: false },
          pin: "pins/mcp.lock.json",
          connectTimeoutMs: 5_000,
        },
      },
    },
  });
  expect(optionsIn(file)).toEqual([
    {
      name: "mine",
      command: "x",
      trust: true,
      approval: "writes",
      tools: { pay: { needsApproval: true, idempotencyArgument: "key" }, remove: false },
      pin: join(dirname(file), "pins/mcp.lock.json"),
      connectTimeoutMs: 5_000,
    },
  ]);
});

test("variables are replaced in every field, once, and only those that editors define", () => {
  const environment = { TOKEN: "t-${NAME}", EMPTY: "", HOST: "a.example.com" };
  const file = write({
    servers: {
      a: {
        command: "${env:HOST}",
        args: ["$TOKEN", "${TOKEN}", "${NAME:-none}", "${EMPTY:-full}", "${x%y}", "${workspaceFolder}${/}a"],
        env: { HOME_OF: "${userHome}", WHERE: "${workspaceFolderBasename}${pathSeparator}" },
        cwd: "${workspaceFolder}/work",
      },
      b: { url: "https://${HOST}/mcp", headers: { Authorization: "Bearer ${env:TOKEN}" } },
    },
  });
  const folder = dirname(file);
  expect(optionsIn(file, { environment })).toEqual([
    {
      name: "a",
      command: "a.example.com",
      args: ["$TOKEN", "t-${NAME}", "none", "", "${x%y}", `${folder}${sep}a`],
      env: { HOME_OF: homedir(), WHERE: `${folder.split(sep).at(-1)}${sep}` },
      cwd: join(folder, "work"),
      secrets: { TOKEN: "t-${NAME}" },
    },
    {
      name: "b",
      url: "https://a.example.com/mcp",
      headers: { Authorization: "Bearer t-${NAME}" },
      secrets: { TOKEN: "t-${NAME}" },
    },
  ]);
});

test("the folder of a project is the one above .vscode", () => {
  const file = write({ servers: { a: { command: "${workspaceFolder}/a" } } }, join(".vscode", "mcp.json"));
  expect(optionsIn(file)).toEqual([{ name: "a", command: join(dirname(file), "..", "a") }]);
});

test("inputs have the value of the caller, of the environment, or their own", () => {
  const file = write({
    inputs: [
      { type: "promptString", id: "api-key", password: true },
      { type: "pickString", id: "region", default: "eu" },
    ],
    servers: { a: { command: "x", args: ["${input:region}"], env: { KEY: "${input:api-key}" } } },
  });
  const expected = { name: "a", command: "x", env: { KEY: "k-1" } };
  expect(optionsIn(file, { inputs: { "api-key": "k-1", region: "us" } })).toMatchObject([
    { ...expected, args: ["us"] },
  ]);
  expect(optionsIn(file, { environment: { TROUPE_INPUT_API_KEY: "k-1" } })).toMatchObject([
    { ...expected, args: ["eu"], secrets: { "api-key": "k-1" } },
  ]);
  expect(optionsIn(file, { environment: { TROUPE_INPUT_API_KEY: "k-1" } })).not.toHaveProperty("[0].secrets.region");
  expect((optionsIn(file)[0] as Error).message).toMatch(
    /mcp\.json: servers\.a: env\.KEY has \$\{input:api-key\}, an input without a value; set TROUPE_INPUT_API_KEY/,
  );
});

test("variables of an envFile reach the program; those of env come first", () => {
  const file = write({ servers: { a: { command: "x", envFile: "${workspaceFolder}/.env", env: { B: "own" } } } });
  writeFileSync(join(dirname(file), ".env"), "A=1\nB='2'\n");
  expect(optionsIn(file)).toEqual([{ name: "a", command: "x", env: { A: "1", B: "own" } }]);
});

test.each([
  [
    "a variable that is not set",
    { command: "${NO}", args: ["${NOT}"] },
    /command has \$\{NO\}, which is not set.*; args\[0\] has/,
  ],
  ["a variable of an editor", { command: "${config:a.b}" }, /\$\{config:a\.b\}, which only an editor can resolve/],
  ["no way to connect", {}, /mcpServers\.desk: give either command or url/],
  ["two ways to connect", { command: "x", url: "https://a.example.com" }, /give either command or url/],
  ["a type without its field", { type: "http", command: "x" }, /type is "http", but the server has no url/],
  [
    "an unknown type",
    { type: "ws", url: "https://a.example.com" },
    /mcpServers\.desk\.type is the text "ws"; expected "stdio"/,
  ],
  ["a misspelt field", { comand: "x" }, /has no option "comand": did you mean command\?/],
  ["the field of another editor", { serverUrl: "https://a.example.com" }, /did you mean url\?/],
  ["an argument that is a number", { command: "x", args: ["a", 5] }, /mcpServers\.desk\.args\[1\] is not a text/],
  [
    "a header that is a number",
    { url: "https://a.example.com", headers: { "X-Pin": 1234 } },
    /headers\["X-Pin"\] is not a text/,
  ],
  [
    "a header that is not valid",
    { url: "https://a.example.com", headers: { "a b": "x" } },
    /desk: headers\["a b"\] is not a valid/,
  ],
  ["an address of another kind", { url: "ftp://a.example.com" }, /mcpServers\.desk: url must be a URL/],
  [
    "an unknown option of ours",
    { command: "x", troupe: { trusted: true } },
    /troupe has no option "trusted": did you mean trust\?/,
  ],
  [
    "a wrong option of ours",
    { command: "x", troupe: { approval: "no" } },
    /mcpServers\.desk\.troupe\.approval is the text "no"/,
  ],
  [
    "a function in JSON",
    { command: "x", troupe: { tools: { a: { needsApproval: "x" } } } },
    /tools\["a"\]\.needsApproval/,
  ],
  ["a missing envFile", { command: "x", envFile: "none.env" }, /mcpServers\.desk\.envFile cannot be read \(ENOENT\)/],
  ["an entry that is a list", [] as object, /mcpServers\.desk is not an object/],
])("%s is an error with the file, the server and the field", (_name, entry, message) => {
  expect(errorOf(entry)).toMatch(message);
  expect(errorOf(entry)).toMatch(/mcp\.json: mcpServers\.desk/);
});

test("a name that cannot begin the names of tools needs another", () => {
  const [options] = optionsIn(write({ mcpServers: { "my server": { command: "x" } } }));
  expect((options as Error).message).toMatch(/mcpServers\["my server"\]: .*"troupe": \{ "name": "docs" \}/);
});

test.each([
  ["no JSON", '{"mcpServers": {"a": {"env": {"TOKEN": canary-1}}}}', /is not valid JSON/],
  ["no servers", "{}", /has neither "mcpServers" nor "servers"/],
  ["both keys", '{"mcpServers":{},"servers":{}}', /has both/],
  ["a list of servers", '{"servers":[]}', /servers is not an object of servers/],
  ["inputs of another form", '{"servers":{},"inputs":{}}', /inputs is not a list/],
])("a file with %s is an error that does not quote it", async (_name, text, message) => {
  const file = write(text);
  const error = await mcpFromConfig(file).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: "invalid_input", message: expect.stringMatching(message) });
  expect(String(error)).not.toContain("canary");
});

test("a missing file is an error with an example", async () => {
  await expect(mcpFromConfig("does-not-exist.json")).rejects.toThrow(
    /there is no file does-not-exist\.json; .*mcpServers/,
  );
});

test("the tools of all servers are those of one agent, and one close ends them", async () => {
  const [stdio, http] = [await openDesk("stdio modern"), await openDesk("http modern")];
  const file = write({ mcpServers: { one: stdio.options, two: http.options } });
  const { tools, servers, close } = await mcpFromConfig(file);
  expect(Object.keys(servers)).toEqual(["one", "two"]);
  const echo = { arguments: { text: "hello" } };
  const { agent } = await callerOf(tools, [
    { name: "one__echo", ...echo },
    { name: "two__echo", ...echo },
  ]);
  await agent.executeTurn("go").result;
  expect(await toolTextsOf(agent)).toEqual(["echo: hello", "echo: hello"]);
  await close();
  const after = await callerOf(tools, [{ name: "one__echo", ...echo }]);
  await after.agent.executeTurn("go").result;
  expect((await toolTextsOf(after.agent))[0]).toContain("closed");
});

test("all servers that cannot be used are listed; they can be skipped", async () => {
  const { url } = await openScripted({});
  const file = write({
    mcpServers: { good: { url }, gone: { url: "http://127.0.0.1:1/mcp" }, wrong: { command: "${NO_SUCH}" } },
  });
  const error = (await mcpFromConfig(file).catch((thrown: unknown) => thrown)) as Error;
  expect(error.message).toMatch(/^2 of 3 MCP servers cannot be used:\n.*mcpServers\.gone: .*\n.*mcpServers\.wrong: /);
  const { tools, broken, close } = await mcpFromConfig(file, { skipBroken: true });
  onTestFinished(close);
  expect(tools.map(({ name }) => name)).toEqual(["good__work"]);
  expect(broken).toMatchObject({ gone: { code: "mcp_server" }, wrong: { code: "invalid_input" } });
});

test("functions for single servers come from the program", async () => {
  const seen: (string | null)[] = [];
  const { url } = await openScripted({
    call: (_number, request, { text }) => {
      seen.push(request.headers.get("x-token"));
      return text("worked");
    },
  });
  const file = write({ mcpServers: { a: { url, headers: { "X-Token": "old" } }, b: { url } } });
  const { tools, close } = await mcpFromConfig(file, {
    servers: {
      a: { headers: () => ({ "X-Token": "fresh" }), tools: { work: { needsApproval: () => false } } },
      b: false,
    },
  });
  onTestFinished(close);
  expect(tools).toHaveLength(1);
  const { agent } = await callerOf(tools, [{ name: "a__work" }]);
  await agent.executeTurn("go").result;
  expect(seen).toEqual(["fresh"]);
  await expect(mcpFromConfig(file, { servers: { c: {} } })).rejects.toThrow(/has no server "c"; it has a, b/);
  await expect(mcpFromConfig(file, { only: ["c"] })).rejects.toThrow(/has no server "c"/);
});

test("two tools of one name are an error", async () => {
  const { url } = await openScripted({});
  const rename = { tools: { work: { rename: "work" } } };
  const file = write({ mcpServers: { a: { url, troupe: rename }, b: { url, troupe: rename } } });
  await expect(mcpFromConfig(file)).rejects.toThrow(/the servers a and b both have a tool "work"/);
});

test("secrets of the file and the environment are in no error", async () => {
  const environment = { SOME_TOKEN: "canary-token-123456", PLAIN: "x" };
  const file = write({
    inputs: [{ id: "pin", type: "promptString", password: true, default: "canary-input-123456" }],
    mcpServers: {
      a: {
        command: process.execPath,
        args: ["-e", "console.error(process.argv); process.exit(1)", "${SOME_TOKEN}", "${input:pin}"],
        env: { API_KEY: "canary-env-123456" },
      },
      b: { url: "http://127.0.0.1:1/${SOME_TOKEN}", headers: { Authorization: "Bearer canary-header-1" } },
      c: { command: "x", troupe: { tools: { a: { effect: "canary" } } }, env: { A: ["canary-list-12345"] } },
    },
  });
  const error = (await mcpFromConfig(file, { environment }).catch((thrown: unknown) => thrown)) as Error;
  expect(error.message).toContain("3 of 3");
  expect(error.message + String(error.stack)).not.toMatch(/canary-/);
  const reports = await checkMcpPins(file, { environment });
  expect(JSON.stringify(reports.map(({ error: one }) => one?.message))).not.toMatch(/canary-/);
});

const nowhere = "http://127.0.0.1:1/mcp";
const credentials = { clientId: "me", clientSecret: "secret", issuer: "https://login.example.com" };

/** Wrong values that a file can have. */
function jsonValues(): readonly unknown[] {
  return classicValues().flatMap((value) => {
    try {
      const text = JSON.stringify(value);
      return text === undefined || text.length > 1_000 ? [] : [JSON.parse(text) as unknown];
    } catch {
      return [];
    }
  });
}

const emptyConfig = (): string => write({ mcpServers: {} });

describe("wrong values", () => {
  test.each(["environment", "inputs", "pin", "servers", "only", "skipBroken"])("of %s are refused", async (name) => {
    const path = emptyConfig();
    for (const value of [...classicValues(), ...anyValues(60)]) {
      await isTaken(name, async () => await mcpFromConfig(path, { [name]: value } as object));
    }
    await expect(mcpFromConfig(path, { [`${name}s1`]: 1 } as object)).rejects.toThrow(/has no option/);
  });

  test.each([mcpFromConfig, pinMcp, checkMcpPins])("of the file are refused", async (call) => {
    for (const value of classicValues()) {
      expect(await isTaken("file", async () => await call(value as string))).toBe(false);
    }
  });

  test.each(["lock", "only"])("of %s when pinning are refused", async (name) => {
    const path = emptyConfig();
    for (const value of [...classicValues(), ...anyValues(60)]) {
      await isTaken(name, async () => await checkMcpPins(path, { [name]: value } as object));
    }
    expect(await isTaken(name, async () => await checkMcpPins(path, { [name]: 5 } as object))).toBe(false);
  });

  test.each([pinMcp, checkMcpPins])("of tokens when pinning are refused", async (call) => {
    const path = emptyConfig();
    let refused = 0;
    for (const value of [...classicValues(), ...anyValues(60)]) {
      // A map has the methods of a store.
      if (!(await isTaken("tokens", async () => await call(path, { tokens: value } as object)))) refused += 1;
    }
    expect(refused).toBeGreaterThan(60);
  });

  test.each([
    ["token", (value: unknown) => ({ token: value })],
    ["oauth", (value: unknown) => ({ oauth: value })],
    ["clientCredentials", (value: unknown) => ({ clientCredentials: value })],
    ["clientId", (value: unknown) => ({ clientCredentials: { ...credentials, clientId: value } })],
    ["clientSecret", (value: unknown) => ({ clientCredentials: { ...credentials, clientSecret: value } })],
    ["issuer", (value: unknown) => ({ clientCredentials: { ...credentials, issuer: value } })],
  ] as const)("of %s in the file are refused", async (field, authOf) => {
    let refused = 0;
    for (const value of jsonValues()) {
      const file = write({ mcpServers: { desk: { url: nowhere, troupe: { auth: authOf(value) } } } });
      const { broken } = await mcpFromConfig(file, { skipBroken: true, tokens: memoryMcpTokens() });
      const isTakenHere = await isTaken(field, () => {
        if (broken["desk"] && !(broken["desk"] instanceof McpServerError)) throw broken["desk"];
      });
      if (!isTakenHere) refused += 1;
    }
    expect(refused).toBeGreaterThan(10);
  });

  test.each(["environment", "inputs", "servers", "tokens"])("of %s for logins are refused", async (name) => {
    const file = write({ mcpServers: { desk: { url: nowhere, troupe: { auth: { oauth: {} } } } } });
    for (const value of [...classicValues(), ...anyValues(60)]) {
      const options = { tokens: memoryMcpTokens(), [name]: value } as object;
      await isTaken(name, async () => await mcpLoginsFromConfig(file, "desk", options));
    }
    expect(await isTaken(name, async () => await mcpLoginsFromConfig(file, "desk", { [name]: 5 } as object))).toBe(
      false,
    );
    for (const value of classicValues()) {
      expect(await isTaken("server", async () => await mcpLoginsFromConfig(file, value as string))).toBe(false);
      expect(await isTaken("file", async () => await mcpLoginsFromConfig(value as string, "desk"))).toBe(false);
    }
    await expect(mcpLoginsFromConfig(file, "desk", { only: ["desk"] } as object)).rejects.toThrow(/has no option/);
  });
});
