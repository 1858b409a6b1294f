import { expect, it } from "vitest";
import { z } from "zod";
import {
  type Agent,
  type AgentDefinition,
  type AgentRequest,
  type Auth,
  type AuthRequest,
  defineAgent,
  defineTool,
  InvalidInputError,
  type RuntimeOptions,
  subagent,
} from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { requestOf, requestsOf, startAgent } from "../support/deciding.ts";
import { loopTurns, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling } from "../support/turn-probes.ts";

const canary = "canary-51b7e0";
const ada: Auth = { actorId: "ada", credentials: { token: canary } };
const adasName: Auth = { actorId: "ada" };

const readOnce: ModelScript = ({ messages }) => (messages.at(-1)?.role === "user" ? calling("read_mail") : "the end");

const readTwice: ModelScript = ({ messages }) =>
  messages.filter(({ role }) => role === "tool").length < 2 ? calling("read_mail") : "the end";

/** A clerk whose tool needs credentials and records the auth it ran with. */
function clerkThat(seen: (Auth | undefined)[], script: ModelScript = readOnce): AgentDefinition {
  const readMail = defineTool({
    name: "read_mail",
    description: "Reads mail.",
    parameters: z.object({ box: z.string().default("in") }),
    effect: "keyed",
    auth: "required",
    execute: (_args, run) => {
      seen.push(run.auth);
      return "no mail";
    },
  });
  return defineAgent({ name: "clerk", model: scriptedModel(script), tools: [readMail] });
}

/** The turn's requests, once this one is among them. */
async function askedAgain(agent: Agent, requestId: string): Promise<readonly AgentRequest[]> {
  for (;;) {
    const requests = await requestsOf(agent.turn("c#1"));
    if (requests.some((one) => one.requestId === requestId)) return requests;
    await loopTurns(1);
  }
}

describeRuntimes("L9: a tool that needs credentials", (stage) => {
  const open = async (options: Partial<RuntimeOptions> = {}, script?: ModelScript) => {
    const seen: (Auth | undefined)[] = [];
    const runtime = await stage().open({ ...options, agents: [clerkThat(seen, script)] });
    return { runtime, seen, agent: await startAgent(runtime, "clerk", "c") };
  };

  it("runs at once if the turn has them", async () => {
    const { runtime, agent, seen } = await open();
    expect((await agent.executeTurn("go", { auth: ada }).result).text).toBe("the end");
    expect(seen).toMatchObject([ada]);
    expect(await runtime.requests({ status: "decided" })).toEqual([]);
  });

  it("calls resolveAuth first, and uses its result for the whole turn", async () => {
    const asked: AuthRequest[] = [];
    const resolveAuth = async (request: AuthRequest): Promise<Auth> => {
      asked.push(request);
      return ada;
    };
    const { agent, seen, runtime } = await open({ resolveAuth }, readTwice);
    expect((await agent.executeTurn("go", { auth: adasName }).result).text).toBe("the end");
    expect(seen).toMatchObject([ada, ada]);
    expect(asked.filter(({ reason }) => reason === "tool")).toEqual([
      { actorId: "ada", agentId: "c", turnId: "c#1", reason: "tool" },
    ]);
    expect(await runtime.requests({ status: "decided" })).toEqual([]);
  });

  it.each<[string, Partial<RuntimeOptions>]>([
    ["resolveAuth is missing", {}],
    ["resolveAuth returns none", { resolveAuth: () => undefined }],
    ["resolveAuth returns only a name", { resolveAuth: () => adasName }],
  ])("waits if %s, until resume({ auth }) provides them", async (_where, options) => {
    const { runtime, agent, seen } = await open(options);
    const turn = agent.executeTurn("go", { auth: adasName });
    const request = await requestOf(turn);
    expect(request).toMatchObject({ kind: "auth", name: "read_mail", actorId: "ada" });
    expect(request.prompt).toMatch(/Credentials are needed for read_mail/);
    expect(seen).toEqual([]);
    await agent.resume({ auth: ada });
    expect((await turn.result).text).toBe("the end");
    expect(seen).toMatchObject([ada]);
    const [decided] = await runtime.requests({ status: "decided" });
    expect(decided?.decision).toEqual({ verdict: "provided", by: "ada", reason: null });
  });

  it("credentials of another actor are refused and stored nowhere", async () => {
    const { agent, seen } = await open();
    const turn = agent.executeTurn("go", { auth: adasName });
    const request = await requestOf(turn);
    const resuming = agent.resume({ auth: { actorId: "bob", credentials: { token: "of-bob" } } });
    await expect(resuming).rejects.toThrow(InvalidInputError);
    await expect(resuming).rejects.toThrow('turn c#1 belongs to actor "ada"; credentials of "bob" were rejected');
    expect(await agent.requests()).toEqual([request]);
    expect(seen).toEqual([]);
    await agent.resume({ auth: ada });
    await turn.result;
    expect(seen).toMatchObject([ada]);
  });

  it("credentials that mayDecide refuses are not stored either", async () => {
    let isAllowed = false;
    const { runtime, agent, seen } = await open({ mayDecide: () => isAllowed }, ({ messages }) =>
      messages.at(-1)?.role === "user" ? calling("read_mail", "read_mail") : "the end",
    );
    const turn = agent.executeTurn("go", { auth: adasName });
    const [first, second] = await requestsOf(turn);
    await expect(agent.resume({ auth: ada })).rejects.toThrow("may not decide");
    isAllowed = true;
    // A decision without credentials: the tool calls resolveAuth and opens a new request.
    await runtime.decide(first?.requestId ?? "", { verdict: "provided" });
    const asked = await askedAgain(agent, "c#1:1:0:2");
    expect(asked.map(({ requestId }) => requestId).toSorted()).toEqual(["c#1:1:0:2", second?.requestId]);
    expect(seen).toEqual([]);
    await agent.resume({ auth: ada });
    await turn.result;
    expect(seen).toMatchObject([ada, ada]);
  });

  it("if resolving throws, the turn fails with that error, and the agent accepts the next turn", async () => {
    let isDown = true;
    const resolveAuth = (): Auth => {
      if (isDown) throw new Error("the vault is locked");
      return ada;
    };
    const { agent, seen } = await open({ resolveAuth });
    const failed = await agent.executeTurn("go", { auth: adasName }).result;
    expect(failed).toMatchObject({ status: "failed", error: { message: "the vault is locked" } });
    isDown = false;
    expect((await agent.executeTurn("go", { auth: adasName }).result).text).toBe("the end");
    expect(seen).toHaveLength(1);
  });

  it("a rejected request reaches the model like other rejections", async () => {
    const { runtime, agent, seen } = await open();
    const turn = agent.executeTurn("go", { auth: adasName });
    await runtime.decide((await requestOf(turn)).requestId, { verdict: "rejected", reason: "not now" });
    expect((await turn.result).text).toBe("the end");
    expect(await toolTextsOf(agent)).toEqual(["Rejected by user: not now"]);
    expect(seen).toEqual([]);
  });

  it("a turn without an actor waits too, and accepts any actor's credentials", async () => {
    const { agent, seen } = await open();
    const turn = agent.executeTurn("go");
    expect(await requestOf(turn)).toMatchObject({ kind: "auth", actorId: null });
    await agent.resume({ auth: ada });
    await turn.result;
    expect(seen).toMatchObject([ada]);
  });

  it("one resume() answers for a subagent and its parent", async () => {
    const seen: (Auth | undefined)[] = [];
    const clerk = clerkThat(seen);
    const lead = defineAgent({
      name: "lead",
      model: scriptedModel(({ messages }) =>
        messages.at(-1)?.role === "user"
          ? calling({ name: "clerk", arguments: { input: "go" } }, "read_mail")
          : "all done",
      ),
      tools: [subagent(clerk), ...clerk.tools.tools],
    });
    const runtime = await stage().open({ agents: [lead] });
    const agent = await startAgent(runtime, "lead", "l");
    const turn = agent.executeTurn("go", { auth: adasName });
    expect((await requestsOf(turn)).map(({ kind, actorId }) => [kind, actorId])).toEqual([
      ["auth", "ada"],
      ["auth", "ada"],
    ]);
    await agent.resume({ auth: ada });
    expect((await turn.result).text).toBe("all done");
    expect(seen).toMatchObject([ada, ada]);
  });

  it("after a restart a new request is opened, and the turn continues once they are provided", async () => {
    const seen: (Auth | undefined)[] = [];
    const doomed = await stage().openProcess({ agents: [clerkThat(seen)] });
    const before = await startAgent(doomed.runtime, "clerk", "c");
    const { requestId } = await requestOf(before.executeTurn("go", { auth: adasName }));
    doomed.kill();
    stage().expireLeases();
    const runtime = await stage().open({ agents: [clerkThat(seen)] });
    const agent = await runtime.find("c");
    await agent.start();
    await loopTurns(30);
    expect((await agent.requests()).map((one) => one.requestId)).toEqual([requestId]);
    await agent.resume({ auth: ada });
    expect((await agent.turn("c#1").result).text).toBe("the end");
    expect(seen).toMatchObject([ada]);
  });

  it("resume({ auth }) alone, without start(), recovers the turn in a new process", async () => {
    const seen: (Auth | undefined)[] = [];
    const doomed = await stage().openProcess({ agents: [clerkThat(seen)] });
    const before = await startAgent(doomed.runtime, "clerk", "c");
    await requestOf(before.executeTurn("go", { auth: adasName }));
    doomed.kill();
    stage().expireLeases();
    const runtime = await stage().open({ agents: [clerkThat(seen)] });
    const agent = await runtime.find("c");
    await agent.resume({ auth: ada });
    expect((await agent.turn("c#1").result).text).toBe("the end");
    expect(seen).toMatchObject([ada]);
  });
});
