import { expect, it } from "vitest";
import { z } from "zod";
import { createRuntime, defineAgent, defineTool, subagent } from "../../src/index.ts";
import { startInspector } from "../../src/inspector/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { listenTo, visit } from "./visitors.ts";

const canary = (place: string): string => `canary-${place}-7f3a`;

it("S13: no frame or page contains secrets or contents", async () => {
  const pay = defineTool({
    name: "pay",
    description: "Pays.",
    parameters: z.object({ card: z.string(), pin: z.number() }),
    effect: "none",
    execute: (_arguments, run) => {
      const { apiKey } = (run.auth?.credentials ?? {}) as { apiKey?: string };
      run.progress({ step: canary("progress") });
      return apiKey === canary("credentials") ? canary("result") : "no";
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
  const child = defineAgent({ name: "child", model: scriptedModel(canary("child-answer")) });
  const calls = [
    { name: "pay", arguments: { card: canary("argument"), pin: 731_954 } },
    { name: "pay", arguments: { card: 1, pin: canary("wrong-argument") } },
    { name: "fail" },
    { name: "child", arguments: { input: canary("child-prompt") } },
  ];
  const agent = defineAgent({
    name: "payer",
    instructions: canary("instructions"),
    model: scriptedModel([
      { toolCalls: calls, reasoning: canary("reasoning") },
      { text: canary("answer") },
      { error: new Error(canary("model-error")) },
    ]),
    tools: [pay, fail, subagent(child)],
    hooks: {
      beforeLlm: (draft) => {
        draft.add({ role: "user", content: canary("hook") });
      },
    },
  });
  const inspector = await startInspector();
  const client = await listenTo(inspector.socketUrl);
  const runtime = await createRuntime({ agents: [agent] });
  inspector.watch(runtime);
  const desk = await runtime.agent("payer", { agentId: "desk", metadata: { note: canary("metadata") } });
  await desk.start();
  const auth = { actorId: canary("actor"), credentials: { apiKey: canary("credentials") } };
  expect((await desk.executeTurn(canary("prompt"), { auth }).result).text).toBe(canary("answer"));
  expect((await desk.executeTurn(canary("prompt"), { auth }).result).status).toBe("failed");
  await client.until((text) => text.includes('"desk#2"') && text.includes('"turn.ended"'));
  await desk.executeTurn("again").abort();
  const late = await listenTo(inspector.socketUrl);
  await late.until((text) => text.includes('"desk"'));
  await runtime.shutdown();
  await client.until((text) => text.includes('"xstate.stop"') && text.includes('"sessionId":"desk"'));

  const page = await visit(inspector.url);
  const everything = [...client.texts, ...late.texts, page.body, JSON.stringify(page.headers)].join("\n");
  expect(everything).toContain('"name":"pay"');
  expect(everything.match(/canary-[a-z-]+/g) ?? []).toEqual([]);
  expect(everything).not.toContain("731954");
  await inspector.close();
});
