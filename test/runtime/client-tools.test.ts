import { expect, it } from "vitest";
import {
  type AgentOptions,
  defineAgent,
  defineTool,
  InvalidInputError,
  NotFoundError,
  PolicyRefusedError,
  subagent,
  type TurnOptions,
} from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { z } from "zod";
import { requestOf, startAgent } from "../support/deciding.ts";
import { entriesOfType, orderFault, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling } from "../support/turn-probes.ts";

const pick = {
  name: "pick_file",
  description: "Lets the user pick a file.",
  parameters: {
    type: "object",
    properties: { kind: { enum: ["image", "text"] } },
    required: ["kind"],
    additionalProperties: false,
  },
} as const;
const clientTools = [pick];
const pickText = { name: "pick_file", arguments: { kind: "text" } };
const own = defineTool({ name: "own", description: "Ours.", parameters: z.object({}), execute: () => "ours" });

function clerk(script: ModelScript, options: Partial<AgentOptions> = {}) {
  const model = scriptedModel(script);
  const definition = defineAgent({ name: "clerk", clientTools: true, tools: [own], ...options, model });
  const offered = () => model.calls.map(({ tools = [] }) => tools.map(({ name }) => name));
  return { definition, model, offered };
}

describeRuntimes("clientTools of a turn", (stage) => {
  const open = async (script: ModelScript, options: Partial<AgentOptions> = {}) => {
    const { definition, ...others } = clerk(script, options);
    const runtime = await stage().open({ agents: [definition] });
    return { ...others, runtime, agent: await startAgent(runtime, "clerk", "c") };
  };

  it("are offered in that turn only, after the agent's own tools, and answered like other client tools", async () => {
    const { runtime, agent, model, offered } = await open([calling(pickText), "thanks", calling(pickText), "sorry"]);
    const turn = agent.executeTurn("go", { clientTools });
    const request = await requestOf(turn);
    const asked = { kind: "client", name: "pick_file", arguments: { kind: "text" }, turnId: "c#1" };
    expect(request).toMatchObject({ ...asked, prompt: 'pick_file({"kind":"text"})' });
    await runtime.decide(request.requestId, { verdict: "answered", result: { path: "/a.txt" }, by: "browser-1" });
    expect(await turn.result).toMatchObject({ status: "completed", text: "thanks" });
    expect(await toolTextsOf(agent)).toEqual(['{"path":"/a.txt"}']);
    expect(orderFault(model.calls[1]?.messages ?? [])).toBeUndefined();
    expect(model.calls[0]?.tools?.[1]).toEqual(pick);
    expect((await agent.executeTurn("again").result).text).toBe("sorry");
    expect(await toolTextsOf(agent)).toEqual(['{"path":"/a.txt"}', expect.stringContaining('no tool "pick_file"')]);
    expect(offered()).toEqual([["own", "pick_file"], ["own", "pick_file"], ["own"], ["own"]]);
    const [first, second] = await entriesOfType(stage().look(), "c", "turn.started");
    expect(first).toMatchObject({ clientTools, tools: [{ name: "own" }, { name: "pick_file", kind: "client" }] });
    expect(second).not.toHaveProperty("clientTools");
  });

  it("a call with arguments that do not fit the schema fails for the model without a request to the client", async () => {
    const wrong = [{ kind: "sound" }, {}, { kind: "text", more: 1 }];
    const asked = wrong.map((args) => calling({ name: "pick_file", arguments: args }));
    const { agent } = await open(
      [...asked.slice(0, 2), calling({ name: "pick_file", arguments: wrong[2] ?? {} }), "done"],
      {
        maxConsecutiveToolFailures: 5,
      },
    );
    expect(await agent.executeTurn("go", { clientTools }).result).toMatchObject({ status: "completed" });
    const texts = await toolTextsOf(agent);
    expect(texts).toHaveLength(3);
    for (const text of texts) expect(text).toMatch(/pick_file was not run.*do not fit/s);
    expect(await entriesOfType(stage().look(), "c", "request.opened")).toEqual([]);
  });

  it("each queued turn has its own client tools", async () => {
    const { runtime, agent, offered } = await open([calling(pickText), "one", "two", "three"]);
    const first = agent.executeTurn("one", { clientTools });
    const request = await requestOf(first);
    const other = [{ ...pick, name: "show_map" }];
    const second = agent.executeTurn("two", { clientTools: other, ifBusy: "queue" });
    const third = agent.executeTurn("three", { clientTools: [], ifBusy: "queue" });
    await second.id;
    await third.id;
    await runtime.decide(request.requestId, { verdict: "answered", result: "x" });
    for (const turn of [first, second, third]) expect((await turn.result).status).toBe("completed");
    expect(offered()).toEqual([["own", "pick_file"], ["own", "pick_file"], ["own", "show_map"], ["own"]]);
  });

  it("survive the death of the process mid-turn, with their requests open", async () => {
    const { definition } = clerk([calling(pickText)]);
    const before = await stage().openProcess({ agents: [definition] });
    const agent = await startAgent(before.runtime, "clerk", "c");
    const request = await requestOf(agent.executeTurn("go", { clientTools }));
    before.kill();
    stage().expireLeases();
    const next = clerk([calling(pickText), "done"]);
    const runtime = await stage().open({ agents: [next.definition] });
    expect(await runtime.requests()).toEqual([request]);
    const again = await runtime.find("c");
    await again.start();
    const turn = again.turn("c#1");
    expect(await requestOf(turn)).toEqual(request);
    await runtime.decide(request.requestId, { verdict: "answered", result: "first" });
    const second = await requestOf(turn);
    expect(second).toMatchObject({ name: "pick_file", step: 2 });
    await runtime.decide(second.requestId, { verdict: "answered", result: "second" });
    expect(await turn.result).toMatchObject({ status: "completed", text: "done" });
    expect(await toolTextsOf(again)).toEqual(["first", "second"]);
    expect(next.offered()).toEqual([
      ["own", "pick_file"],
      ["own", "pick_file"],
    ]);
  });

  it("are saved with an unsaved tree and restored with it", async () => {
    const { definition } = clerk([calling(pickText)]);
    const before = await stage().openProcess({ agents: [definition] });
    const agent = await before.runtime.agent("clerk", { agentId: "c", autoSave: false });
    await agent.start();
    const { requestId } = await requestOf(agent.executeTurn("go", { clientTools }));
    await agent.saveState();
    before.kill();
    stage().expireLeases();
    const next = clerk(["done"]);
    const runtime = await stage().open({ agents: [next.definition] });
    const again = await runtime.find("c");
    await again.start();
    await runtime.decide(requestId, { verdict: "answered", result: "x" });
    expect(await again.turn("c#1").result).toMatchObject({ status: "completed", text: "done" });
    expect(next.offered()).toEqual([["own", "pick_file"]]);
  });

  it("a definition that no longer accepts client tools runs the turn without them and reports it", async () => {
    const { definition } = clerk([calling(pickText), calling(pickText)]);
    const before = await stage().openProcess({ agents: [definition] });
    const agent = await startAgent(before.runtime, "clerk", "c");
    const { requestId } = await requestOf(agent.executeTurn("go", { clientTools }));
    await agent.executeTurn("next", { clientTools, ifBusy: "queue" }).id;
    before.kill();
    stage().expireLeases();
    const next = clerk(["one", "two"], { clientTools: false });
    const runtime = await stage().open({ agents: [next.definition] });
    const again = await runtime.find("c");
    await again.start();
    await runtime.decide(requestId, { verdict: "answered", result: "x" });
    expect(await again.turn("c#2").result).toMatchObject({ status: "completed", text: "two" });
    expect(await toolTextsOf(again)).toEqual([expect.stringContaining("not available any more")]);
    expect(next.offered()).toEqual([["own"], ["own"]]);
    const warnings = await entriesOfType(stage().look(), "c", "warning");
    expect(warnings.filter(({ code }) => code === "client_tools_refused")).toMatchObject([{ turnId: "c#2" }]);
  });

  it("a long answer is stored whole, and the model can read it even if the agent has no other tool", async () => {
    const { runtime, agent, offered } = await open([calling(pickText), "read"], { tools: [] });
    const turn = agent.executeTurn("go", { clientTools });
    const { requestId, callId } = await requestOf(turn);
    await runtime.decide(requestId, { verdict: "answered", result: "x".repeat(40_000) });
    await turn.result;
    expect(await agent.getArtifacts()).toMatchObject([
      { name: "pick_file output", size: 40_000, turnId: "c#1", callId },
    ]);
    expect(offered()).toEqual([["pick_file"], ["read_artifact", "pick_file"]]);
  });

  it("are refused if the definition does not accept them, or is unknown to this process", async () => {
    const { agent, model } = await open(["never"], { clientTools: false });
    await expect(agent.executeTurn("go", { clientTools }).id).rejects.toThrow(PolicyRefusedError);
    await expect(agent.executeTurn("go", { clientTools }).id).rejects.toThrow("clientTools: true");
    expect(agent.state).toMatchObject({ openTurnId: null, turnCount: 0 });
    const stranger = await stage().open({ agents: [defineAgent({ name: "other", model: scriptedModel("x") })] });
    const seen = await stranger.find("c");
    await expect(seen.executeTurn("go", { clientTools }).id).rejects.toThrow(NotFoundError);
    expect((await agent.executeTurn("go", { clientTools: [] }).result).text).toBe("never");
    expect(model.calls[0]?.tools?.map(({ name }) => name)).toEqual(["own"]);
  });

  it("are refused for a subagent whose parent restricts its tools", async () => {
    const child = defineAgent({ name: "child", clientTools: true, tools: [own], model: scriptedModel("done") });
    const lead = defineAgent({
      name: "lead",
      tools: [subagent(child, { policy: { deniedTools: ["own"] } })],
      model: scriptedModel([calling({ name: "child", arguments: { input: "x" } }), "done"]),
    });
    const runtime = await stage().open({ agents: [lead] });
    const agent = await startAgent(runtime, "lead", "l");
    await agent.executeTurn("go").result;
    const [, record] = await runtime.list();
    const kid = await runtime.find(record?.agentId ?? "");
    await expect(kid.executeTurn("go", { clientTools }).id).rejects.toThrow(PolicyRefusedError);
  });

  const cycle: Record<string, unknown> = { type: "object" };
  cycle["self"] = cycle;
  it.each<[string, unknown, RegExp]>([
    ["the name of an agent's tool", [{ ...pick, name: "own" }], /already has a tool "own"/],
    ["the name of a runtime tool", [{ ...pick, name: "read_artifact" }], /already has a tool "read_artifact"/],
    ["a duplicate name", [pick, pick], /Two tools are named "pick_file"/],
    ["a name that no provider accepts", [{ ...pick, name: "pick file" }], /cannot be named "pick file"/],
    ["no description", [{ ...pick, description: " " }], /description is empty/],
    ["no schema", [{ name: "a", description: "b" }], /clientTools.*\[0\]\.parameters/],
    ["a schema of a string", [{ ...pick, parameters: { type: "string" } }], /must describe an object/],
    ["a schema as a text", [{ ...pick, parameters: '{"type":"object"}' }], /\[0\]\.parameters/],
    ["a cyclic schema", [{ ...pick, parameters: cycle }], /cannot be taken/],
    ["a function", [{ ...pick, execute: () => 1 }], /clientTools/],
    ["an unknown field", [{ ...pick, needsApproval: true }], /needsApproval/],
    ["an object instead of a list", pick, /clientTools/],
    ["too many tools", Array.from({ length: 129 }, (_, index) => ({ ...pick, name: `t${index}` })), /128/],
    ["too much data", [{ ...pick, description: "x".repeat(1_000_001) }], /cannot be taken/],
    ["too large a schema", [{ ...pick, parameters: { type: "object", title: "x".repeat(300_000) } }], /256,?000/],
    [
      "a value that throws when it is read",
      new Proxy([], {
        get: () => {
          throw new Error("no");
        },
      }),
      /clientTools|executeTurn/,
    ],
  ])("the whole list is refused: %s", async (_what, given, why) => {
    const { agent } = await open(["fine"]);
    const turn = agent.executeTurn("go", { clientTools: given } as TurnOptions);
    await expect(turn.id).rejects.toThrow(why);
    await expect(turn.id).rejects.toThrow(InvalidInputError);
    expect(agent.state).toMatchObject({ openTurnId: null, turnCount: 0 });
    expect((await agent.executeTurn("go").result).text).toBe("fine");
  });

  it("are copied: later changes by the caller have no effect", async () => {
    const properties: Record<string, unknown> = {};
    const mine: { name: string; description: string; parameters: { type: string; properties: object } } = {
      ...pick,
      parameters: { type: "object", properties },
    };
    const { agent, model } = await open(["done"]);
    const turn = agent.executeTurn("go", { clientTools: [mine as never] });
    properties["late"] = { type: "string" };
    mine.name = "own";
    await turn.result;
    expect(model.calls[0]?.tools?.[1]).toMatchObject({ name: "pick_file", parameters: { properties: {} } });
  });
});
