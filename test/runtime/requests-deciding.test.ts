import { expect, it } from "vitest";
import { z } from "zod";
import {
  askUser,
  clientTool,
  type Decide,
  type DecisionAttempt,
  defineAgent,
  defineTool,
  InvalidInputError,
  NotFoundError,
  RequestConflictError,
  type RuntimeOptions,
} from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { openTill, payment, requestOf, requestsOf, startAgent } from "../support/deciding.ts";
import { entriesOfType, loopTurns, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling } from "../support/turn-probes.ts";

const pick = clientTool({ name: "pick", description: "Picks.", parameters: z.object({}) });
const readMail = defineTool({
  name: "read_mail",
  description: "Reads mail.",
  parameters: z.object({}),
  auth: "required",
  execute: () => "no mail",
});
const question = { name: "ask_user", arguments: { question: "Tea or coffee?" } };

describeRuntimes("decisions", (stage) => {
  const open = async (script: ModelScript, options: Partial<RuntimeOptions> = {}) => {
    const till = openTill();
    const tools = [till.tool, pick, askUser(), readMail];
    const clerk = defineAgent({ name: "clerk", model: scriptedModel(script), tools });
    const runtime = await stage().open({ ...options, agents: [clerk] });
    return { runtime, till, agent: await startAgent(runtime, "clerk", "c") };
  };

  it("T5: one decision is accepted; later ones are refused and name the first one's verdict and author", async () => {
    const { runtime, agent, till } = await open([calling(payment(5)), "the end"]);
    const turn = agent.executeTurn("pay");
    const { requestId } = await requestOf(turn);
    await runtime.decide(requestId, { verdict: "approved", by: "grace" });
    const later: Decide[] = [
      { verdict: "approved", by: "grace" },
      { verdict: "rejected", by: "bob", reason: "no" },
      { verdict: "edited", arguments: { to: "Bob", amount: 1 } },
    ];
    const refused = async (): Promise<void> => {
      for (const decide of later) {
        const deciding = runtime.decide(requestId, decide);
        await expect(deciding).rejects.toThrow(RequestConflictError);
        await expect(deciding).rejects.toMatchObject({
          code: "request_conflict",
          message: 'request "c#1:1:0:1" was approved by grace',
          details: { requestId, status: "decided", verdict: "approved", by: "grace" },
        });
      }
    };
    await refused();
    expect((await turn.result).status).toBe("completed");
    await refused();
    expect(till.paid).toHaveLength(1);
    expect(await entriesOfType(stage().look(), "c", "request.decided")).toHaveLength(1);
    expect(await stage().look().inbox({ tenant: "default", agentId: "c" })).toEqual([]);
  });

  it("a request of an ended turn can no longer be decided", async () => {
    const { runtime, agent, till } = await open([calling(payment(5))]);
    const turn = agent.executeTurn("pay");
    const { requestId } = await requestOf(turn);
    await turn.abort();
    await turn.result;
    await expect(runtime.decide(requestId, { verdict: "approved" })).rejects.toMatchObject({
      code: "request_conflict",
      message: 'request "c#1:1:0:1" was closed: its turn continued without a decision',
      details: { requestId, status: "closed", verdict: null, by: null },
    });
    await loopTurns(20);
    expect(till.paid).toEqual([]);
    expect(await runtime.requests()).toEqual([]);
  });

  it.each(["", "c", "c#1:1:0", "c#1:1:0:2", "c#1:1:1:1", "x#1:1:0:1", "::::", "__proto__", "c#1:1:0:1\n", "ä/../{c}"])(
    "request %j is not found",
    async (requestId) => {
      const { runtime, agent } = await open([calling(payment(5)), "the end"]);
      const turn = agent.executeTurn("pay");
      const { requestId: real } = await requestOf(turn);
      await expect(runtime.decide(requestId, { verdict: "approved" })).rejects.toThrow(NotFoundError);
      await expect(runtime.decide(requestId, { verdict: "answered", result: "x" })).rejects.toThrow(
        `there is no request "${requestId}"`,
      );
      await runtime.decide(real, { verdict: "approved" });
      await turn.result;
    },
  );

  it("requests of another tenant are invisible", async () => {
    const { runtime, agent, till } = await open([calling(payment(5)), "the end"]);
    const other = stage().look();
    const turn = agent.executeTurn("pay");
    const { requestId } = await requestOf(turn);
    const key = { tenant: "other", agentId: "c" };
    const approved = { verdict: "approved", by: "mallory", reason: null } as const;
    expect(await other.decide(key, requestId, approved, stage().clock.now())).toEqual({ type: "notFound" });
    expect(await other.requests({ tenant: "other" })).toEqual([]);
    await runtime.decide(requestId, { verdict: "rejected" });
    await turn.result;
    expect(till.paid).toEqual([]);
  });

  it("each kind accepts only its own verdicts, and only the clock expires a request", async () => {
    const { runtime, agent } = await open([calling(payment(5), "pick", question, "read_mail"), "the end"]);
    const turn = agent.executeTurn("go", { auth: { actorId: "ada" } });
    const requests = await requestsOf(turn);
    expect(requests.map(({ kind }) => kind)).toEqual(["approval", "client", "question", "auth"]);
    const fit: Record<string, string[]> = {
      approval: ["approved", "edited", "rejected"],
      client: ["answered", "rejected"],
      question: ["answered", "rejected"],
      auth: ["provided", "rejected"],
    };
    for (const { requestId, kind } of requests) {
      for (const verdict of ["approved", "edited", "rejected", "answered", "provided", "expired", "granted"]) {
        if (fit[kind]?.includes(verdict)) continue;
        const deciding = runtime.decide(requestId, { verdict: verdict as never, arguments: {}, result: "x" });
        await expect(deciding).rejects.toThrow(InvalidInputError);
        await expect(deciding).rejects.toThrow(
          `request "${requestId}" is of kind "${kind}" and cannot be ${verdict}; it can be ${fit[kind]?.join(", ")}`,
        );
      }
    }
    expect(await agent.requests()).toEqual(requests);
    for (const { requestId } of requests) await runtime.decide(requestId, { verdict: "rejected" });
    expect((await turn.result).status).toBe("completed");
    expect(await toolTextsOf(agent)).toEqual(requests.map(() => "Rejected by user."));
  });

  it.each<[string, object, RegExp]>([
    ["a number as who", { by: 5 }, /by is 5; expected a text/],
    ["an object as why", { reason: { text: "no" } }, /reason is an object; expected a text/],
  ])("%s is refused, and nothing is decided", async (_what, more, told) => {
    const { runtime, agent } = await open([calling(payment(5)), "the end"]);
    const turn = agent.executeTurn("pay");
    const request = await requestOf(turn);
    const deciding = runtime.decide(request.requestId, { verdict: "rejected", ...more });
    await expect(deciding).rejects.toThrow(InvalidInputError);
    await expect(deciding).rejects.toThrow(told);
    expect(await agent.requests()).toEqual([request]);
    await runtime.decide(request.requestId, { verdict: "rejected" });
    await turn.result;
  });

  it("mayDecide is called for each decision; if it returns false or throws, nothing is decided", async () => {
    const attempts: DecisionAttempt[] = [];
    const mayDecide = async (attempt: DecisionAttempt): Promise<boolean> => {
      attempts.push(attempt);
      if (attempt.by === null) throw new Error("the directory does not answer");
      return attempt.by === "grace" && attempt.request.actorId !== attempt.by;
    };
    const { runtime, agent, till } = await open([calling(payment(5)), "the end"], { mayDecide });
    const turn = agent.executeTurn("pay", { auth: { actorId: "ada" } });
    const request = await requestOf(turn);
    const { requestId } = request;
    await expect(runtime.decide(requestId, { verdict: "approved", by: "ada" })).rejects.toThrow(
      'ada may not decide request "c#1:1:0:1"',
    );
    await expect(runtime.decide(requestId, { verdict: "approved" })).rejects.toThrow("the directory does not answer");
    expect(await agent.requests()).toEqual([request]);
    await runtime.decide(requestId, { verdict: "edited", by: "grace", arguments: { to: "Bob", amount: 1 } });
    await turn.result;
    expect(till.paid).toEqual([{ to: "Bob", amount: 1 }]);
    expect(attempts).toEqual([
      { request, by: "ada", verdict: "approved" },
      { request, by: null, verdict: "approved" },
      { request, by: "grace", verdict: "edited", arguments: { to: "Bob", amount: 1 } },
    ]);
  });

  it("mayDecide is not called when a request expires", async () => {
    let asked = 0;
    const mayDecide = (): boolean => {
      asked += 1;
      return false;
    };
    const till = openTill({ approvalExpiresAfterMs: 1_000 });
    const clerk = defineAgent({
      name: "clerk",
      model: scriptedModel([calling(payment(5)), "the end"]),
      tools: [till.tool],
    });
    const runtime = await stage().open({ agents: [clerk], mayDecide });
    const turn = (await startAgent(runtime, "clerk", "c")).executeTurn("pay");
    await turn.settled;
    stage().clock.advance(1_000);
    expect((await turn.result).status).toBe("completed");
    expect(asked).toBe(0);
    expect(till.paid).toEqual([]);
  });

  it("a decision with a key can be repeated from any process, even after the turn's end", async () => {
    const { runtime, agent, till } = await open(({ messages }) =>
      messages.at(-1)?.role === "user" ? calling(payment(1), payment(2)) : "the end",
    );
    const turn = agent.executeTurn("pay", { key: "t" });
    const [one, two] = (await requestsOf(turn)).map(({ requestId }) => requestId);
    if (one === undefined || two === undefined) throw new Error("expected two requests");
    const decide: Decide = { verdict: "approved", by: "ann", key: "k" };
    const first = await runtime.decide(one, decide);
    expect(first).toMatchObject({ requestId: one, decidedWith: { key: "k", turnId: "c#1" } });
    const elsewhere = await stage().open({ agents: [] });
    const repeated = { ...first, isReplayed: true };
    expect(await elsewhere.decide(one, decide)).toEqual(repeated);
    const taken = { code: "request_conflict", details: { key: "k", requestId: one, turnId: "c#1" } };
    await expect(elsewhere.decide(two, decide)).rejects.toMatchObject(taken);
    await expect(runtime.decide(one, { ...decide, verdict: "rejected" })).rejects.toMatchObject(taken);
    await expect(runtime.decide(two, { ...decide, key: "t" })).rejects.toMatchObject({
      code: "request_conflict",
      details: { key: "t", requestId: null, turnId: "c#1" },
    });
    await runtime.decide(two, { verdict: "rejected" });
    await turn.result;
    expect(await elsewhere.decide(one, decide)).toEqual(repeated);
    expect(await agent.decide(one, decide)).toEqual(repeated);
    await expect(agent.executeTurn("pay", { key: "k" }).id).rejects.toMatchObject({
      code: "turn_conflict",
      details: { agentId: "c", key: "k", turnId: "c#1", requestId: one },
    });
    expect(till.paid).toHaveLength(1);
    await expect(runtime.decide(one, { ...decide, key: "a b" })).rejects.toThrow(InvalidInputError);
  });

  it("lists waiting requests by tree, agent, turn and status, in pages", async () => {
    const { runtime, agent } = await open(({ messages }) =>
      messages.at(-1)?.role === "user" ? calling(payment(1), payment(2), payment(3)) : "the end",
    );
    const other = await startAgent(runtime, "clerk", "d");
    const turns = [agent.executeTurn("pay"), other.executeTurn("pay")];
    for (const turn of turns) await turn.settled;
    const ids = async (filter: object) => (await runtime.requests(filter)).map(({ requestId }) => requestId);
    const own = [0, 1, 2].map((index) => `c#1:1:${index}:1`);
    expect(await ids({ agentId: "c" })).toEqual(own);
    expect(await ids({ rootAgentId: "c" })).toEqual(own);
    expect(await ids({ turnId: "c#1" })).toEqual(own);
    expect(await ids({ turnId: "c#2" })).toEqual([]);
    expect(await ids({})).toHaveLength(6);
    const paged: string[] = [];
    for (let after: string | undefined; ; ) {
      const page = await ids({ limit: 2, after });
      paged.push(...page);
      after = page.at(-1);
      if (page.length < 2) break;
    }
    expect(paged).toEqual(await ids({}));
    for (const requestId of paged) await runtime.decide(requestId, { verdict: "rejected" });
    for (const turn of turns) await turn.result;
    expect(await ids({})).toEqual([]);
    expect(await ids({ status: "decided", agentId: "d" })).toHaveLength(3);
  });
});
