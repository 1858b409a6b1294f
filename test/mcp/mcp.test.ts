import { describe, expect, test } from "vitest";
import { requestOf } from "../support/deciding.ts";
import { entriesOfType, toolTextsOf } from "../support/journal-probes.ts";
import { pixel } from "./desk-server.ts";
import { callerOf, connected, openDesk, ways } from "./served-desk.ts";

describe.each(ways)("over %s", (way) => {
  test("an agent calls the tools of a server", async () => {
    const desk = await openDesk(way);
    const { tools, warnings } = await connected({ name: "desk", ...desk.options });
    expect(warnings).toEqual([]);
    expect(tools.slice(0, 2).map(({ name }) => name)).toEqual(["desk__echo", "desk__pay"]);
    const { agent } = await callerOf(tools, [{ name: "desk__echo", arguments: { text: "hello" } }]);
    expect(await agent.executeTurn("go").result).toMatchObject({ status: "completed", toolCalls: 1 });
    expect(await toolTextsOf(agent)).toEqual(["echo: hello"]);
  });

  test("texts, images, binaries and structured values keep their form", async () => {
    const desk = await openDesk(way);
    const { tools } = await connected({ name: "desk", ...desk.options });
    const { agent } = await callerOf(tools, [
      { name: "desk__scan" },
      { name: "desk__count" },
      { name: "desk__refuse" },
    ]);
    await agent.executeTurn("go").result;
    const [scan, count, refuse] = await toolTextsOf(agent);
    expect(scan).toMatch(/^scanned\n\[image 1\]\n.*report\.pdf/);
    expect(count).toBe('{"files":3}');
    expect(refuse).toBe("there is no paper");
    const messages = JSON.stringify(await agent.getMessages());
    expect(messages).toContain(pixel);
    const [artifact] = await agent.getArtifacts();
    expect(artifact).toMatchObject({ name: "report.pdf", contentType: "application/pdf", encoding: "base64" });
  });

  test("twenty agents use one connection, and each gets its own answers", async () => {
    const desk = await openDesk(way);
    const { tools } = await connected({ name: "desk", ...desk.options });
    const texts = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const calls = ["a", "b", "c"].map((part) => ({ name: "desk__echo", arguments: { text: `${index}${part}` } }));
        const { agent } = await callerOf(tools, calls);
        await agent.executeTurn("go").result;
        return await toolTextsOf(agent);
      }),
    );
    expect(texts).toEqual(texts.map((_, index) => ["a", "b", "c"].map((part) => `echo: ${index}${part}`)));
  });

  test("an idempotency argument is filled from the call's key and hidden from the model", async () => {
    const desk = await openDesk(way);
    const { tools } = await connected({
      name: "desk",
      ...desk.options,
      tools: { pay: { idempotencyArgument: "key" } },
    });
    const pay = tools.find(({ name }) => name === "desk__pay");
    expect(pay).toMatchObject({ effect: "keyed", jsonSchema: { required: ["amount"] } });
    expect(Object.keys(pay?.jsonSchema["properties"] as object)).toEqual(["amount"]);
    const { agent, stores } = await callerOf(tools, [{ name: "desk__pay", arguments: { amount: 5 } }]);
    await agent.executeTurn("go").result;
    const [started] = await entriesOfType(stores, "caller", "tool.started");
    expect(started).toBeDefined();
    const [effect = ""] = desk.effects();
    expect(effect).toMatch(/^5 .{8,}$/);
    expect(await toolTextsOf(agent)).toEqual([`paid 5 with ${effect.slice(2)}`]);
  });
});

test("annotations restrict always, and loosen only with trust", async () => {
  const desk = await openDesk("http modern");
  const ofTools = async (options: object) => {
    const { tools } = await connected({ name: "desk", ...desk.options, ...options });
    const named = (name: string) => tools.find((tool) => tool.name === `desk__${name}`);
    return Object.fromEntries(
      ["echo", "put", "remove", "refuse"].map((name) => [name, [named(name)?.effect, named(name)?.needsApproval]]),
    );
  };
  const cautious = { echo: ["once", false], put: ["once", false], remove: ["once", true], refuse: ["once", false] };
  expect(await ofTools({})).toEqual(cautious);
  expect(await ofTools({ trust: true })).toEqual({ ...cautious, echo: ["none", false], put: ["keyed", false] });
  const all = { echo: ["once", true], put: ["once", true], remove: ["once", true], refuse: ["once", true] };
  expect(await ofTools({ approval: "writes" })).toEqual(all);
  expect(await ofTools({ approval: "always" })).toEqual(all);
  expect(await ofTools({ approval: "writes", trust: true })).toEqual({
    echo: ["none", false],
    put: ["keyed", true],
    remove: ["once", true],
    refuse: ["once", true],
  });
  const none = Object.fromEntries(Object.keys(all).map((name) => [name, ["once", false]]));
  expect(await ofTools({ approval: "never" })).toEqual(none);
  const own = { remove: { effect: "keyed", needsApproval: false }, echo: { needsApproval: true } };
  expect(await ofTools({ tools: own })).toEqual({ ...cautious, remove: ["keyed", false], echo: ["once", true] });
});

test("a destructive tool runs only after a person has approved it", async () => {
  const desk = await openDesk("http modern");
  const { tools } = await connected({ name: "desk", ...desk.options });
  const { agent, runtime } = await callerOf(tools, [{ name: "desk__remove" }]);
  const turn = agent.executeTurn("go");
  const request = await requestOf(turn);
  expect(request).toMatchObject({ kind: "approval", name: "desk__remove" });
  await runtime.decide(request.requestId, { verdict: "rejected", reason: "keep it" });
  await turn.result;
  expect((await toolTextsOf(agent))[0]).toContain("keep it");
});

test("names are legal, tools can be renamed and left out", async () => {
  const desk = await openDesk("http modern");
  const { tools } = await connected({
    name: "desk",
    ...desk.options,
    tools: { echo: { rename: "repeat", timeoutMs: 5_000 }, crash: false, hang: false },
  });
  const names = tools.map(({ name }) => name);
  expect(names).toContain("repeat");
  expect(tools[0]).toMatchObject({ name: "repeat", timeoutMs: 5_000 });
  expect(names.filter((name) => /crash|hang|echo/.test(name))).toEqual([]);
  const [dotted = ""] = names.filter((name) => name.startsWith("desk__files"));
  expect(dotted).toMatch(/^desk__files_read_all_[0-9a-f]{12}$/);
  const { agent } = await callerOf(tools, [{ name: "repeat", arguments: { text: "x" } }, { name: dotted }]);
  await agent.executeTurn("go").result;
  expect(await toolTextsOf(agent)).toEqual(["echo: x", "all files"]);
});
