import { beforeAll, expect, test } from "vitest";
import { z } from "zod";
import {
  type AgentDefinition,
  createRuntime,
  defineAgent,
  defineTool,
  memoryStores,
  type Stores,
  textOf,
} from "../../src/index.ts";
import { auditRun, verifyAudit } from "../../src/inspector/index.ts";
import type { TraceEntry } from "../../src/state/index.ts";
import { fork, replay, scriptedModel } from "../../src/testing/index.ts";
import { calling, createGate } from "../support/turn-probes.ts";

/* A run whose turn got another input: replay, fork, audit and trace understand it. */

const work = createGate();

function worker(check = (input: string) => `checked: ${input}`): AgentDefinition {
  return defineAgent({
    name: "worker",
    tools: [
      defineTool({
        name: "work",
        description: "Works.",
        parameters: z.object({}),
        effect: "none",
        execute: async () => {
          await work.pass();
          return "worked";
        },
      }),
    ],
    model: scriptedModel(({ messages }) => {
      const told = messages.filter(({ role, content }) => role === "user" && textOf(content) !== "");
      return messages.at(-1)?.content === "checked: go"
        ? calling("work")
        : `heard: ${textOf(told.at(-1)?.content ?? "")}`;
    }),
    hooks: { afterUserInput: (draft) => draft.add({ role: "system", content: check(draft.input) }) },
  });
}

let stores: Stores;
let trace: readonly TraceEntry[];
const source = () => ({ stores, agentId: "w" });

beforeAll(async () => {
  stores = memoryStores();
  const runtime = await createRuntime({ agents: [worker()], stores });
  const agent = await runtime.agent("worker", { agentId: "w" });
  await agent.start();
  const turn = agent.executeTurn("go");
  await work.reached();
  await turn.steer("use blue", { key: "k" });
  work.open();
  await turn.result;
  trace = await agent.getTrace();
});

test("the trace has both inputs", () => {
  expect(trace.filter(({ type }) => type === "user_input")).toMatchObject([
    { prompt: "go", step: 0, turn: 1 },
    { prompt: "use blue", step: 2, turn: 1 },
  ]);
});

test("a replay repeats the hooks of the input, and finds a changed one", async () => {
  expect(await replay(source(), { agents: worker() })).toMatchObject({ isEqual: true });
  const changed = worker((input) => (input === "go" ? "checked: go" : "not checked"));
  expect(await replay(source(), { agents: changed })).toMatchObject({ isEqual: false });
});

test("a fork before the step that sees the input has it, and one before the input does not", async () => {
  const later = await fork(source(), { at: { turn: 1, step: 2 }, agents: worker() });
  expect(await later.turn.result).toMatchObject({ text: "heard: use blue" });
  const earlier = await fork(source(), { at: { turn: 1, step: 1 }, agents: worker() });
  expect(await earlier.turn.result).toMatchObject({ text: "heard: go" });
});

test("an audit verifies the run, and its chain covers the input", async () => {
  const audit = await auditRun(source());
  const head = audit.head ?? "";
  expect(verifyAudit(audit, { head }).verdict).toBe("verified");
  const changed = JSON.parse(JSON.stringify(audit).replaceAll('"use blue"', '"use red"')) as typeof audit;
  expect(verifyAudit(changed, { head }).verdict).toBe("broken");
});
