import { createAgent, InvalidInputError } from "troupe";
import { McpServerError, type McpTools } from "troupe/mcp";
import { scriptedModel } from "troupe/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { toolTextsOf } from "../support/journal-probes.ts";
import { anyValues, classicValues, isTaken } from "../support/wrong-values.ts";
import { everythingTransports, openEverything } from "./reference-servers.ts";
import { openScripted } from "./scripted-server.ts";
import { callerOf, connected, openDesk, ways } from "./served-desk.ts";

const gifUrl = /^data:image\/gif;base64,R0lGOD/;

describe.each(ways)("over %s", (way) => {
  test("a program lists and reads resources", async () => {
    const desk = await connected({ name: "desk", ...(await openDesk(way)).options });
    expect(await desk.resources()).toEqual([
      { uri: "desk://note", name: "note", description: "A note.", mimeType: "text/plain" },
      { uri: "desk://folder", name: "folder" },
    ]);
    expect(await desk.resourceTemplates()).toEqual([{ uriTemplate: "desk://drawer/{number}", name: "drawer" }]);
    expect(await desk.readResource("desk://drawer/7")).toEqual([{ type: "text", text: "drawer 7" }]);
    expect(await desk.readResource("desk://folder")).toEqual([
      { type: "text", text: "first" },
      {
        type: "file",
        mediaType: "application/pdf",
        name: "report.pdf",
        url: "data:application/pdf;base64,JVBERi0xLjc=",
      },
      { type: "image", url: expect.stringMatching(gifUrl) },
      { type: "text", text: "" },
    ]);
  });

  test("a program gets prompts as messages", async () => {
    const desk = await connected({ name: "desk", ...(await openDesk(way)).options });
    expect(await desk.prompts()).toEqual([
      { name: "tidy", description: "Tidies.", arguments: [] },
      {
        name: "letter",
        arguments: [
          { name: "about", required: true },
          { name: "tone", required: false },
        ],
      },
    ]);
    expect(await desk.prompt("tidy")).toMatchObject({
      messages: [{ role: "user", content: [{ text: "Tidy the desk." }] }],
    });
    const letter = await desk.prompt("letter", { about: "rain", tone: "kindly" });
    expect(letter).toMatchObject({
      description: "A letter.",
      messages: [
        { role: "user", content: [{ type: "text", text: "Write about rain, kindly." }] },
        { role: "assistant", content: [{ type: "text", text: "Here is my paper:" }] },
        { role: "user", content: [{ type: "image" }] },
        { role: "user", content: [{ type: "file", mediaType: "application/pdf", name: "paper.pdf" }] },
      ],
    });
  });

  test("a model lists and reads resources by tools", async () => {
    const { options } = await openDesk(way);
    const { tools } = await connected({ name: "desk", ...options, resourceTools: true });
    const { agent } = await callerOf(tools, [
      { name: "desk__list_resources" },
      { name: "desk__read_resource", arguments: { uri: "desk://folder" } },
      { name: "desk__read_resource", arguments: { uri: "desk://nowhere" } },
    ]);
    await agent.executeTurn("go").result;
    const texts = await toolTextsOf(agent);
    const list = JSON.parse(texts.find((text) => text.startsWith("{")) ?? "{}") as Record<string, unknown>;
    expect(list["resources"]).toHaveLength(2);
    expect(list["templates"]).toEqual([{ uriTemplate: "desk://drawer/{number}", name: "drawer" }]);
    expect(texts).toContainEqual(
      expect.stringMatching(/^first\n\[file report\.pdf, application\/pdf, 8 bytes: artifact .*\n\[image 1\]/),
    );
    expect(texts).toContainEqual(expect.stringMatching(/desk:\/\/nowhere/));
    const { errors } = await agent.turn("caller#1").result;
    expect(errors).toHaveLength(1);
  });
});

test("parts of a resource and of a prompt are the input of a turn", async () => {
  const desk = await connected({ name: "desk", ...(await openDesk("http modern")).options });
  const { messages } = await desk.prompt("letter", { about: "rain" });
  const agent = await createAgent({ model: scriptedModel("done") });
  onTestFinished(() => agent.runtime.shutdown());
  await agent.start();
  await agent.executeTurn(messages.flatMap(({ content }) => content)).result;
  await agent.executeTurn(await desk.readResource("desk://folder")).result;
  const [first, , second] = await agent.getMessages();
  expect(first?.content).toMatchObject([{ type: "text" }, { type: "text" }, { type: "image" }, { type: "file" }]);
  expect(second?.content).toMatchObject([{ text: "first" }, { type: "file" }, { type: "image" }, { text: "" }]);
});

const rulesOf = ({ tools }: McpTools) =>
  tools.slice(-2).map(({ name, effect, needsApproval }) => [name, effect, needsApproval]);

describe("tools that read resources", () => {
  test("they follow the rules of trust and approval", async () => {
    const { options } = await openDesk("http modern");
    const given = { name: "desk", ...options, resourceTools: true };
    const [list, read] = ["desk__list_resources", "desk__read_resource"];
    expect(rulesOf(await connected(given))).toEqual([
      [list, "once", false],
      [read, "once", false],
    ]);
    expect(rulesOf(await connected({ ...given, approval: "writes" }))).toEqual([
      [list, "once", true],
      [read, "once", true],
    ]);
    expect(rulesOf(await connected({ ...given, approval: "writes", trust: true }))).toEqual([
      [list, "none", false],
      [read, "none", false],
    ]);
    const tools = { list_resources: false, read_resource: { rename: "look", effect: "keyed" } } as const;
    expect(rulesOf(await connected({ ...given, tools })).at(-1)).toEqual(["look", "keyed", false]);
  });

  test("they are there on request only, and not instead of the server's own", async () => {
    const { options } = await openDesk("http modern");
    const { tools } = await connected({ name: "desk", ...options });
    expect(tools.some(({ name }) => name.endsWith("_resource"))).toBe(false);
    const server = await openScripted({ tools: [{ name: "read_resource", description: "Mine." }] });
    const far = await connected({ name: "far", url: server.url, resourceTools: true });
    expect(far.tools.map(({ name, description }) => [name, description.slice(0, 5)])).toEqual([
      ["far__read_resource", "Mine."],
      ["far__list_resources", "Lists"],
    ]);
    expect(far.warnings).toEqual(['The tool "read_resource" is listed twice; the first is used.']);
  });

  test("a server that does not have resources answers with an error", async () => {
    const server = await openScripted({});
    const far = await connected({ name: "far", url: server.url, resourceTools: true });
    expect(await far.resources()).toEqual([]);
    expect(await far.resourceTemplates()).toEqual([]);
    expect(await far.prompts()).toEqual([]);
    await expect(far.readResource("a:b")).rejects.toThrow(/the resource "a:b" cannot be read: .*not found/i);
    const { agent } = await callerOf(far.tools, [{ name: "far__list_resources" }]);
    const { errors } = await agent.executeTurn("go").result;
    expect(errors).toHaveLength(1);
  });
});

test("a secret in a resource is removed", async () => {
  const secret = "canary-1b7e55a0";
  const { options } = await openDesk("stdio modern");
  const desk = await connected({ name: "desk", ...options, env: { DESK_TOKEN: secret } });
  expect(await desk.readResource("desk://note")).toEqual([{ type: "text", text: "the token is [secret:DESK_TOKEN]" }]);
});

test("a server that was replaced is asked again in a new session", async () => {
  const server = await openDesk("http legacy");
  const desk = await connected({ name: "desk", ...server.options });
  await server.restart();
  expect(await desk.readResource("desk://drawer/1")).toEqual([{ type: "text", text: "drawer 1" }]);
});

test("the end of the signal, of the time and of the connection end a request", async () => {
  const server = await openDesk("http modern");
  const desk = await connected({ name: "desk", ...server.options });
  const reason = new Error("enough");
  await expect(desk.resources({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  await server.stop();
  await expect(desk.readResource("desk://note")).rejects.toBeInstanceOf(McpServerError);
  await desk.close();
  await expect(desk.prompts()).rejects.toThrow(/closed by close\(\)/);
});

const open = async (): Promise<McpTools> =>
  await connected({ name: "desk", ...(await openDesk("http modern")).options });

describe("invalid arguments", () => {
  const values = [...classicValues(), ...anyValues(20)];
  const refusalsOf = async (
    field: string,
    ask: (desk: McpTools, value: never) => Promise<unknown>,
  ): Promise<number> => {
    const desk = await open();
    let refused = 0;
    for (const value of values) {
      const check = async (): Promise<void> => {
        await ask(desk, value as never).catch((error: unknown) => {
          if (!(error instanceof McpServerError)) throw error;
        });
      };
      if (!(await isTaken(field, check))) refused += 1;
    }
    return refused;
  };

  test.each(["actorId", "signal", "timeoutMs"])("%s", async (field) => {
    const refused = await refusalsOf(field, async (desk, value) => await desk.resources({ [field]: value }));
    expect(refused).toBeGreaterThan(10);
  });

  test("uri, name and args", async () => {
    expect(await refusalsOf("uri", async (desk, value) => await desk.readResource(value))).toBeGreaterThan(10);
    expect(await refusalsOf("name", async (desk, value) => await desk.prompt(value))).toBeGreaterThan(10);
    expect(await refusalsOf("args", async (desk, value) => await desk.prompt("tidy", value))).toBeGreaterThan(10);
  });

  test("the error names the mistake", async () => {
    const desk = await open();
    await expect(desk.readResource("")).rejects.toBeInstanceOf(InvalidInputError);
    await expect(desk.resources({ timeout: 5 } as never)).rejects.toThrow(/timeoutMs/);
    await expect(desk.prompt("letter", {})).rejects.toBeInstanceOf(McpServerError);
    await expect(desk.prompt("nobody")).rejects.toThrow(/the prompt "nobody" cannot be read/);
  });
});

test.each(everythingTransports)("resources and prompts of the reference server over %s", async (transport) => {
  const all = await connected({ name: "all", ...(await openEverything(transport)) });
  const resources = await all.resources();
  expect(resources.length).toBeGreaterThan(5);
  for (const { uri } of resources) {
    const [part] = await all.readResource(uri);
    expect(part).toMatchObject({ type: "text", text: expect.stringMatching(/./) });
  }
  const templates = await all.resourceTemplates();
  expect(templates.map(({ uriTemplate }) => uriTemplate)).toEqual([
    "demo://resource/dynamic/text/{resourceId}",
    "demo://resource/dynamic/blob/{resourceId}",
  ]);
  expect(await all.readResource("demo://resource/dynamic/blob/1")).toMatchObject([
    { type: "file", mediaType: "text/plain" },
  ]);
  const prompts = await all.prompts();
  expect(prompts.map(({ name }) => name)).toEqual([
    "simple-prompt",
    "args-prompt",
    "completable-prompt",
    "resource-prompt",
  ]);
  const { messages } = await all.prompt("args-prompt", { city: "Paris" });
  expect(messages).toEqual([{ role: "user", content: [{ type: "text", text: "What's weather in Paris?" }] }]);
  expect(await all.prompt("resource-prompt", { resourceType: "Text", resourceId: "1" })).toMatchObject({
    messages: [{ role: "user" }, { role: "user", content: [{ type: "text" }] }],
  });
});
