import { expect, it } from "vitest";
import { z } from "zod";
import { createRuntime, defineAgent, defineTool, subagent } from "../../src/index.ts";
import { runtimeActor } from "../../src/inspector/feed/act.ts";
import { Feed } from "../../src/inspector/feed/feed.ts";
import { feedEntrySchema } from "../../src/inspector/feed/wire.ts";
import { serveFeed } from "../../src/inspector/start-inspector.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { isCaughtUp, readerOf } from "./feed-fixtures.ts";
import { visit } from "./visitors.ts";

const canary = (place: string): string => `canary-${place}-7f3a`;

/** A payer with every kind of content in its run, and everything that a feed returns of it, as text. */
async function everythingSeen(namesOnly: boolean): Promise<{ rows: string; answers: string; texts: string }> {
  const pay = defineTool({
    name: "pay",
    description: canary("description"),
    parameters: z.object({ card: z.string(), pin: z.number() }),
    effect: "none",
    execute: (_arguments, run) => {
      run.progress({ step: canary("progress") });
      return canary("result");
    },
  });
  const fail = defineTool({
    name: "fail",
    description: "Fails.",
    parameters: z.object({}),
    effect: "once",
    execute: () => {
      throw new Error(canary("error"));
    },
  });
  const send = defineTool({
    name: "send",
    description: "Sends.",
    parameters: z.object({ to: z.string() }),
    effect: "once",
    needsApproval: true,
    execute: () => "sent",
  });
  const child = defineAgent({ name: "child", model: scriptedModel(canary("child-answer")) });
  const calls = [
    { name: "pay", arguments: { card: canary("argument"), pin: 731_954 } },
    { name: "pay", arguments: { card: 1, pin: canary("wrong-argument") } },
    { name: "fail" },
    { name: "send", arguments: { to: canary("recipient") } },
    { name: "child", arguments: { input: canary("child-prompt") } },
  ];
  const agent = defineAgent({
    name: "payer",
    instructions: () => canary("instructions"),
    model: scriptedModel([
      { toolCalls: calls, reasoning: canary("reasoning") },
      { text: canary("answer") },
      { error: new Error(canary("model-error")) },
    ]),
    tools: [pay, fail, send, subagent(child)],
    hooks: {
      beforeLlm: (draft) => {
        draft.add({ role: "user", content: canary("hook") });
      },
    },
  });
  const runtime = await createRuntime({ agents: [agent] });
  const feed = new Feed({ namesOnly });
  const { stores, tenant } = runtime;
  feed.add({ stores, tenant, runtime, actor: runtimeActor(runtime, "tester") });
  const server = await serveFeed(feed, { mayAct: true });
  const desk = await runtime.agent("payer", {
    agentId: "desk",
    ownerId: canary("owner"),
    sessionId: canary("session"),
    metadata: { note: canary("metadata") },
  });
  await desk.start();
  const reader = await readerOf(feed, "desk", { after: 0, credit: 1_000 });
  const auth = { actorId: canary("actor"), credentials: { apiKey: canary("credentials") } };
  const turn = desk.executeTurn(canary("prompt"), { auth, key: "a-key" });
  expect((await turn.settled).status).toBe("waiting");
  const [request] = await runtime.requests();
  const requestId = request?.requestId ?? "";
  const open = JSON.stringify(await feed.requests("desk"));
  await runtime.decide(requestId, { verdict: "rejected", by: canary("decider"), reason: canary("reason") });
  expect((await turn.result).text).toBe(canary("answer"));
  expect((await desk.executeTurn(canary("prompt"), { auth }).result).status).toBe("failed");
  await desk.executeTurn("again").abort(canary("abort"));
  const head = (await stores.readTree(tenant, "desk", 0, 10_000)).at(-1)?.cursor ?? 0;
  await reader.until((message) => message.type === "rows" && message.head >= head && isCaughtUp(message));
  for (const { entries } of reader.rows) {
    for (const entry of entries) expect(feedEntrySchema.safeParse(entry).error).toBeUndefined();
  }
  const ids = (await runtime.list()).map(({ agentId }) => agentId);
  const prompts = await feed.prompts("desk", "desk");
  const paths = [
    "/api/info",
    "/api/runs",
    "/api/runs/desk",
    ...ids.flatMap((id) =>
      ["machines", "transitions", "messages", "prompts"].map(
        (view) => `/api/runs/desk/agents/${encodeURIComponent(id)}/${view}`,
      ),
    ),
    ...prompts.map(({ seq }) => `/api/runs/desk/agents/desk/prompts/${seq}`),
    ...calls.map((_call, index) => `/api/runs/desk/calls/${encodeURIComponent(`desk#1:1:${index}`)}`),
    ...reader.rows.map(({ cursor }) => `/api/runs/desk/rows/${cursor}`),
    "/api/runs/desk/requests",
    "/api/runs/desk/search?text=canary",
    "/api/runs/desk/steps",
    "/api/runs/desk/accounts",
    "/api/runs/desk/owners",
    "/api/runs/desk/export",
  ];
  const answers: string[] = [open];
  for (const path of paths) {
    const answer = await visit(`${server.origin}${path}`, { authorization: `Bearer ${server.tokens.watch}` });
    expect([path, answer.status]).toEqual([path, 200]);
    answers.push(answer.body);
  }
  reader.watch.end();
  await server.close();
  await runtime.shutdown();
  return {
    rows: JSON.stringify(reader.messages.filter(({ type }) => type !== "live")),
    texts: JSON.stringify(reader.messages.filter(({ type }) => type === "live")),
    answers: answers.join("\n"),
  };
}

function canariesIn(text: string): string[] {
  return [...new Set(text.match(/canary-[a-z-]+/g) ?? [])].toSorted();
}

it("S13: with names only, no path of the feed returns contents", async () => {
  const { rows, texts, answers } = await everythingSeen(true);
  expect(rows).toContain('"name":"pay"');
  expect(canariesIn(rows)).toEqual([]);
  expect(canariesIn(texts)).toEqual([]);
  expect(canariesIn(answers)).toEqual([]);
  expect(rows + answers).not.toContain("731954");
  expect(answers).not.toContain("a-key");
});

it("S13: rows have no contents, answers do, and credentials are nowhere", async () => {
  const { rows, answers } = await everythingSeen(false);
  const inRows = canariesIn(rows);
  for (const hidden of ["prompt", "argument", "result", "answer", "instructions", "hook", "child-prompt"]) {
    expect(inRows).not.toContain(`canary-${hidden}-`);
  }
  expect(rows).not.toContain("731954");
  expect(inRows).toContain("canary-error-");
  for (const shown of ["prompt", "argument", "result", "answer", "instructions"]) {
    expect(canariesIn(answers)).toContain(`canary-${shown}-`);
  }
  expect(canariesIn(rows + answers)).not.toContain("canary-credentials-");
});
