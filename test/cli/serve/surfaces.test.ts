import { expect, test } from "vitest";
import { agent } from "./served-team.ts";
import { readyLines } from "../../../src/cli/serve/ready-lines.ts";
import { loadSurfaces, type ServedSurface } from "../../../src/cli/serve/surfaces.ts";
import { UnsupportedError } from "../../../src/errors/index.ts";
import { apiSurface } from "../../../src/server/index.ts";

const teal = [{ definition: agent, version: "1.0" }];
const place = {
  agents: [agent],
  teal,
  sharing: undefined,
  chatIdHeaders: ["X-Chat"],
  mcpStateKey: () => Promise.resolve("a-key-of-at-least-thirty-two-bytes"),
};

/** A surface that records whether it was loaded; `absent`: its package is missing. */
function surface(name: string, loaded: string[], absent?: string): ServedSurface {
  return {
    name,
    title: name.toUpperCase(),
    addresses: (url) => [`${url}/${name}`],
    load: () => {
      loaded.push(name);
      if (absent !== undefined) return Promise.reject(new UnsupportedError(absent));
      return Promise.resolve(() => ({ ...apiSurface(), name }));
    },
  };
}

const absence = 'it needs the package "wire-sdk": npm install wire-sdk';

function linesOf(surfaces: Parameters<typeof readyLines>[1]["surfaces"]): readonly string[] {
  const access = { way: "token", token: "a-token-of-ann-0001", isGiven: false } as const;
  const ready = { url: "http://127.0.0.1:1", page: "  Page: none", surfaces, access, place: "a.db" };
  return readyLines(teal, { ...ready, tenant: "default", input: "Hello?", isYaml: false });
}

test("unnamed surfaces are not loaded, and the order is that of the registry", async () => {
  const loaded: string[] = [];
  const known = [surface("one", loaded), surface("two", loaded), surface("three", loaded)];
  const surfaces = await loadSurfaces("three, one,three", known);
  expect(loaded).toEqual(["one", "three"]);
  expect((await surfaces.make(place)).map(({ name }) => name)).toEqual(["one", "three"]);
});

test("a surface without its package is left out with the install command, and refused if it is named", async () => {
  const known = [surface("one", []), surface("wire", [], absence)];
  const surfaces = await loadSurfaces(undefined, known);
  expect((await surfaces.make(place)).map(({ name }) => name)).toEqual(["one"]);
  expect(linesOf(surfaces)).toEqual(
    expect.arrayContaining(["  ONE: http://127.0.0.1:1/one", `  WIRE: left out; ${absence}`]),
  );
  await expect(loadSurfaces("one,wire", known)).rejects.toMatchObject({
    code: "invalid_input",
    message: `--surfaces wire: ${absence}`,
  });
});

test("an error inside an installed surface does not count as a missing package", async () => {
  const broken = { ...surface("one", []), load: () => Promise.reject(new TypeError("a fault in it")) };
  await expect(loadSurfaces(undefined, [broken])).rejects.toThrow("a fault in it");
});

test.each([
  ["api", ["API"], "/api/agents -d"],
  ["teal", ["Teal Agents"], "/desk/1.0 -d"],
  ["a2a", ["A2A"], "/a2a/desk/message:send -d"],
  ["openai", ["OpenAI"], "/v1/chat/completions -d"],
  ["mcp", ["MCP"], "/mcp -d"],
])("--surfaces %s: its URLs, and a command that calls it", async (list, titles, command) => {
  const lines = linesOf(await loadSurfaces(list));
  const shown = lines.filter((line) => /^ {2}(?!Page|Health|curl)/.test(line)).map((line) => line.trim().split(":")[0]);
  expect(shown).toEqual(titles);
  expect(lines.at(-1)).toContain(command);
});

test.each([
  ["ag-ui", "AG-UI: http://127.0.0.1:1/ag-ui/desk (for clients of AG-UI 1.0)"],
  ["ai-sdk", "AI SDK: http://127.0.0.1:1/ai-sdk/desk (for useChat)"],
])("--surfaces %s: the address for its client", async (list, line) => {
  const surfaces = await loadSurfaces(list);
  expect(linesOf(surfaces).map((one) => one.trim())).toContain(line);
  const [surface] = await surfaces.make(place);
  expect(surface?.name).toBe(list);
});

test("the headers in which front ends name their chats come from the command line", async () => {
  const [surface] = await (await loadSurfaces("openai")).make(place);
  expect(surface?.headers).toEqual(expect.arrayContaining(["x-troupe-conversation", "x-chat"]));
});
