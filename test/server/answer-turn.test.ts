// A message to one turn answers that turn, at any time and in any process, and never starts another.
import { type AgentRequest, askUser, defineAgent, type Runtime, textOf } from "troupe";
import { jsonFailure, type Surface } from "troupe/server";
import { scriptedModel } from "troupe/testing";
import { expect, it } from "vitest";
import { z } from "zod";
import { answerTurn } from "../../src/server/core/plain-message.ts";
import { routeAt, runtimeOf, serve } from "./served.ts";

/** Asks a question for each word "ask", one after the other, and then repeats the last answer. */
const model = scriptedModel(({ messages }) => {
  const asked = messages.findLastIndex(({ role }) => role === "user");
  const wanted = textOf(messages[asked]?.content ?? "")
    .split(" ")
    .filter((word) => word === "ask").length;
  const answers = messages.slice(asked + 1).filter(({ role }) => role === "tool").length;
  if (answers < wanted) return { toolCalls: [{ name: "ask_user", arguments: { question: "who?" } }] };
  return { text: `heard ${textOf(messages.at(-1)?.content ?? "")}` };
});
const desk = defineAgent({ name: "desk", model, tools: [askUser()] });

async function opened() {
  const runtime: Runtime = await runtimeOf({ agents: [desk] });
  const body = z.object({ turnId: z.string().optional(), text: z.string(), key: z.string().optional() });
  const send = routeAt(
    "send",
    async ({ caller, body: given }) => {
      const { turnId, text, key } = given as z.infer<typeof body>;
      const options = key === undefined ? {} : { key: { route: "test.send", value: key } };
      const agent = await caller.openAgent({ definition: "desk", name: "one" });
      const started =
        turnId === undefined
          ? await caller.startTurn(agent, text, options)
          : await caller.answerTurn({ agent, turnId }, text, options);
      const { status } = await started.turn.settled;
      return Response.json({ turnId: started.turnId, isReplayed: started.isReplayed, became: started.became, status });
    },
    { method: "POST", body },
  );
  const surface: Surface = { name: "test", paths: ["/test"], routes: [send], failure: jsonFailure };
  const { ask } = serve(runtime, { surfaces: [surface] });
  const said = async (text: string, more: { readonly turnId?: string; readonly key?: string } = {}) => {
    const response = await ask("/test/send", { method: "POST", body: { text, ...more } });
    const answer = (await response.json()) as { turnId: string; error?: { code: string } };
    return response.status === 200 ? answer : { ...answer, turnId: "", code: answer.error?.code };
  };
  return { runtime, said };
}

it("answers the open question, and has the same outcome if it is sent again after the end", async () => {
  const { runtime, said } = await opened();
  const { turnId } = await said("ask");
  const answered = { turnId, became: "answer", status: "completed" };
  expect(await said("ann", { turnId, key: "k" })).toEqual({ ...answered, isReplayed: false });
  expect(await said("ann", { turnId, key: "k" })).toEqual({ ...answered, isReplayed: true });
  expect(await said("bob", { turnId, key: "k" })).toMatchObject({ code: "key_reused" });
  expect(await runtime.turns()).toHaveLength(1);
});

it("starts nothing if the turn has ended or another one is open", async () => {
  const { runtime, said } = await opened();
  const { turnId } = await said("hello");
  expect(await said("more", { turnId })).toMatchObject({ code: "agent_busy" });
  expect(await said("more", { turnId, key: "k" })).toMatchObject({ code: "agent_busy" });
  const waiting = await said("ask");
  expect(await said("ann", { turnId, key: "k" })).toMatchObject({ code: "agent_busy" });
  expect(await runtime.requests()).toHaveLength(1);
  expect(await said("ann", { turnId: waiting.turnId, key: "k" })).toMatchObject({ isReplayed: false });
  expect(await said("ann", { turnId, key: "k" })).toMatchObject({ code: "key_reused" });
  expect(await runtime.turns()).toHaveLength(2);
});

it("answers one question, however many equal messages are sent concurrently", async () => {
  const { runtime, said } = await opened();
  const { turnId } = await said("ask ask");
  const all = await Promise.all(Array.from({ length: 20 }, () => said("ann", { turnId, key: "k" })));
  expect(new Set(all.map((one) => one.turnId))).toEqual(new Set([turnId]));
  expect(await runtime.requests({ status: "decided" })).toHaveLength(1);
  expect(await runtime.requests()).toHaveLength(1);
});

it("finds its answer stored if an equal message is answered while it reads", async () => {
  const runtime = await runtimeOf({ agents: [desk] });
  const agent = await runtime.agent("desk", { ownerId: "ann" });
  await agent.start();
  const turn = agent.executeTurn("ask");
  const turnId = (await turn.settled).turnId;
  const message = { agent, content: "ann", options: { key: { route: "test.send", value: "k" } } };
  const sender: Parameters<typeof answerTurn>[0] = {
    ownerId: "ann",
    runtime,
    decidedRequests: async (rootAgentId) => await runtime.requests({ rootAgentId, status: "decided" }),
    request: async (id) => (await runtime.requests()).find(({ requestId }) => requestId === id) as AgentRequest,
    startTurn: () => Promise.reject(new Error("it starts none")),
  };
  let isFirst = true;
  const looking: typeof sender = {
    ...sender,
    decidedRequests: async (rootAgentId) => {
      const found = await sender.decidedRequests(rootAgentId);
      if (isFirst) {
        isFirst = false;
        await (await answerTurn(sender, message, turnId)).turn.result;
      }
      return found;
    },
  };
  expect(await answerTurn(looking, message, turnId)).toMatchObject({ turnId, isReplayed: true, became: "answer" });
});
