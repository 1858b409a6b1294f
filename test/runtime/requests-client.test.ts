import { expect, it } from "vitest";
import { z } from "zod";
import { askUser, clientTool, defineAgent, InvalidInputError, type AgentOptions } from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { requestOf, startAgent } from "../support/deciding.ts";
import { entriesOfType, orderFault, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling } from "../support/turn-probes.ts";

const pick = clientTool({
  name: "pick_file",
  description: "Lets the user pick a file.",
  parameters: z.object({ kind: z.enum(["image", "text"]) }),
  describeCall: ({ kind }) => `Please pick a file (${kind}).`,
});
const pickText = { name: "pick_file", arguments: { kind: "text" } };
const question = { name: "ask_user", arguments: { question: "Tea or coffee?", options: ["tea", "coffee"] } };

describeRuntimes("client tools and questions", (stage) => {
  const open = async (script: ModelScript, options: Partial<AgentOptions> = {}) => {
    const model = scriptedModel(script);
    const clerk = defineAgent({ name: "clerk", tools: [pick, askUser()], ...options, model });
    const runtime = await stage().open({ agents: [clerk] });
    return { runtime, model, agent: await startAgent(runtime, "clerk", "c") };
  };

  it("L7: a client tool brings the turn to rest until its caller answers", async () => {
    const { runtime, agent, model } = await open([calling(pickText), "thanks"]);
    const turn = agent.executeTurn("go");
    const request = await requestOf(turn);
    expect(request).toMatchObject({
      kind: "client",
      name: "pick_file",
      arguments: { kind: "text" },
      prompt: "Please pick a file (text).",
    });
    const { decision } = await runtime.decide(request.requestId, {
      verdict: "answered",
      result: "/tmp/a.txt",
      by: "browser-1",
    });
    expect(decision).toEqual({
      verdict: "answered",
      by: "browser-1",
      reason: null,
      result: { text: "/tmp/a.txt", isError: false },
    });
    expect(await turn.result).toMatchObject({ status: "completed", text: "thanks" });
    expect(await toolTextsOf(agent)).toEqual(["/tmp/a.txt"]);
    expect(orderFault(model.calls[1]?.messages ?? [])).toBeUndefined();
    const [settled] = await entriesOfType(stage().look(), "c", "tool.settled");
    expect(settled).toMatchObject({ outcome: "success" });
    // The runtime has run no tool of its own.
    expect(await entriesOfType(stage().look(), "c", "tool.started")).toEqual([]);
  });

  it.each<[unknown, string]>([
    ["as it is", "as it is"],
    ["", ""],
    [undefined, ""],
    [42, "42"],
    [null, "null"],
    [{ path: "/tmp/a", tags: ["x"] }, '{"path":"/tmp/a","tags":["x"]}'],
    [["a", 1], '["a",1]'],
  ])("the answer %j reaches the model as %j", async (answer, told) => {
    const { runtime, agent } = await open([calling(pickText), "thanks"]);
    const turn = agent.executeTurn("go");
    await runtime.decide((await requestOf(turn)).requestId, { verdict: "answered", result: answer });
    expect((await turn.result).status).toBe("completed");
    expect(await toolTextsOf(agent)).toEqual([told]);
  });

  it("an answer that cannot be shown to the model is refused, and another can be given", async () => {
    const { runtime, agent } = await open([calling(pickText), "thanks"]);
    const turn = agent.executeTurn("go");
    const request = await requestOf(turn);
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    for (const answer of [1n, cycle, () => "x", Buffer.from("x"), new Map()]) {
      await expect(runtime.decide(request.requestId, { verdict: "answered", result: answer })).rejects.toThrow(
        InvalidInputError,
      );
      await expect(runtime.decide(request.requestId, { verdict: "answered", result: answer })).rejects.toThrow(
        /request "c#1:1:0:1": .*JSON form/,
      );
    }
    expect(await agent.requests()).toEqual([request]);
    await runtime.decide(request.requestId, { verdict: "answered", result: "x" });
    expect((await turn.result).status).toBe("completed");
  });

  it("a failure reported by the caller is an error for the model, and onError is called", async () => {
    const failures: string[] = [];
    const hooks: AgentOptions["hooks"] = { onError: (draft) => void failures.push(draft.result.outcome) };
    const { runtime, agent } = await open([calling(pickText), "sorry"], { hooks });
    const turn = agent.executeTurn("go");
    const { requestId } = await requestOf(turn);
    await runtime.decide(requestId, { verdict: "answered", result: "the disk is on fire", isError: true });
    expect(await turn.result).toMatchObject({ status: "completed", text: "sorry" });
    expect(await toolTextsOf(agent)).toEqual(["the disk is on fire"]);
    expect(failures).toEqual(["error"]);
    const [message] = (await agent.getMessages()).filter(({ role }) => role === "tool");
    expect(message).toMatchObject({ isError: true });
  });

  it("a call that the caller rejects reaches the model with the reason", async () => {
    const { runtime, agent } = await open([calling(pickText), "a pity"]);
    const turn = agent.executeTurn("go");
    await runtime.decide((await requestOf(turn)).requestId, { verdict: "rejected", reason: "no file dialog here" });
    expect((await turn.result).text).toBe("a pity");
    expect(await toolTextsOf(agent)).toEqual(["Rejected by user: no file dialog here"]);
  });

  it("a huge answer is stored whole, and the model gets its beginning and its end", async () => {
    const { runtime, agent } = await open([calling(pickText), "thanks"]);
    const turn = agent.executeTurn("go");
    const huge = `begin ${"x".repeat(100_000)} end`;
    await runtime.decide((await requestOf(turn)).requestId, { verdict: "answered", result: huge });
    await turn.result;
    const [told = ""] = await toolTextsOf(agent);
    expect(told.length).toBeLessThan(40_000);
    expect(told).toMatch(/^begin x+/);
    const [artifact] = await agent.getArtifacts();
    expect((await agent.getArtifact(artifact?.artifactId ?? ""))?.content).toBe(huge);
  });

  it("L7: a question to the user shows its options, and the answer reaches the model", async () => {
    const { runtime, agent } = await open([calling(question), "Tea it is."]);
    const turn = agent.executeTurn("Something hot, please.");
    const request = await requestOf(turn);
    expect(request).toMatchObject({ kind: "question", name: "ask_user", arguments: question.arguments });
    expect(request.prompt).toMatch(/Tea or coffee\?/);
    await runtime.decide(request.requestId, { verdict: "answered", result: "tea", by: "ada" });
    expect((await turn.result).text).toBe("Tea it is.");
    expect(await toolTextsOf(agent)).toEqual(["tea"]);
  });

  it("a call with arguments that do not fit the schema opens no request and gets an error", async () => {
    const wrong = { name: "pick_file", arguments: { kind: "sound" } };
    const { runtime, agent } = await open([calling(wrong), "oh"]);
    expect((await agent.executeTurn("go").result).text).toBe("oh");
    expect((await toolTextsOf(agent))[0]).toMatch(/kind/);
    expect(await runtime.requests({ status: "closed" })).toEqual([]);
    expect(await runtime.requests({ status: "decided" })).toEqual([]);
  });

  it("a hook can deny the call before a request is opened", async () => {
    const hooks: AgentOptions["hooks"] = { beforeEachTool: (draft) => draft.deny("not at night") };
    const { runtime, agent } = await open([calling(pickText), "oh"], { hooks });
    expect((await agent.executeTurn("go").result).text).toBe("oh");
    expect((await toolTextsOf(agent))[0]).toMatch(/not at night/);
    expect(await runtime.requests({ status: "closed" })).toEqual([]);
  });
});
