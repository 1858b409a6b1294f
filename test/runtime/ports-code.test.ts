import { expect, it, vi } from "vitest";
import { z } from "zod";
import {
  type AgentOptions,
  type Auth,
  createRuntime,
  defineAgent,
  defineTool,
  InvalidInputError,
  type RunContext,
  subagent,
} from "../../src/index.ts";
import { createFakeClock } from "../../src/testing/index.ts";
import { toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { adapter, callOf, childDefinition, rightAnswer, worker } from "../support/seam-play.ts";

/** Passes a value of a wrong type, as unchecked code does. */
function wrong(value: unknown): never {
  return value as never;
}

const withTool = (execute: (run: RunContext) => unknown): Partial<AgentOptions> => {
  const probe = { name: "probe", description: "Probes.", parameters: z.object({}), effect: "none" as const };
  const tool = defineTool({ ...probe, execute: async (_args, run) => await execute(run) });
  return { model: adapter(() => callOf("probe")), tools: [tool] };
};

function brokenInspector(): void {
  throw new Error("broken inspector");
}

const resolveAuth = (): Auth => wrong({ actorId: 7, credentials: "x" });
const mayDecide = (): boolean => wrong("no");

describeRuntimes(
  "wrong values from user code",
  (stage) => {
    const played = async (options: Partial<AgentOptions>) => {
      const runtime = await stage().open({ agents: [defineAgent(worker(options)), childDefinition] });
      const agent = await runtime.agent("worker", { agentId: "worker-1" });
      await agent.start();
      return { result: await agent.executeTurn("go").result, agent };
    };

    it.each<[string, Partial<AgentOptions>, RegExp]>([
      [
        "instructions",
        { instructions: () => wrong(undefined) },
        /the result of instructions\(\) of agent "worker" is undefined; it must be a text/,
      ],
      [
        "a warning",
        { hooks: { beforeLlm: (_draft, run) => void run.emitWarning(wrong(5), "x") } },
        /the code passed to emitWarning\(\) is 5; it must be a text/,
      ],
      [
        "a message of a hook",
        { hooks: { beforeLlm: (draft) => draft.add({ role: "user", content: wrong({ text: 5 }) }) } },
        /the content of a message must be a text, or a list of text, image and file parts; it is an object/,
      ],
      [
        "a history",
        { history: { name: "mine", internalTools: false, compile: () => wrong([5]) } },
        /the history compiler "mine" returned 5 at \[0\]; expected messages/,
      ],
      [
        "a request to generate()",
        { hooks: { beforeLlm: async (_draft, run) => void (await run.generate(wrong({ messages: "x" }))) } },
        /the request that run\.generate\(\) was given cannot be taken: messages: /,
      ],
    ])("%s fails the turn with a clear error", async (_what, options, words) => {
      const { result } = await played(options);
      expect(result).toMatchObject({ status: "failed", error: { code: "invalid_input" } });
      expect(result.error?.message).toMatch(words);
    });

    it.each<[string, Partial<AgentOptions>, RegExp]>([
      [
        "an artifact without a name",
        withTool((run) => run.saveArtifact(wrong({ contentType: "text/plain", content: "x" }))),
        /the artifact that run\.saveArtifact\(\) was given cannot be taken: name: .*expected string/,
      ],
      [
        "a buffer as an artifact",
        withTool((run) => run.saveArtifact(wrong({ name: "a", contentType: "b", content: new ArrayBuffer(2) }))),
        /content: an object of class ArrayBuffer has no JSON form/,
      ],
      [
        "progress that is not JSON",
        withTool((run) => run.progress(wrong({ at: 5n }))),
        /the update that run\.progress\(\) was given cannot be taken: at: the bigint 5n has no JSON form/,
      ],
      [
        "the prompt of a child",
        withTool((run) => run.spawn(childDefinition, wrong(5), { key: "one" })),
        /the input that run\.spawn\(\) was given is 5; it must be a text/,
      ],
      [
        "the prompt of a subagent",
        {
          model: adapter(() => callOf("child", { input: "x" })),
          tools: [subagent(childDefinition, { input: () => wrong(Promise.resolve("later")) })],
        },
        /the result of input\(\) of the subagent "child" is an object of class Promise; it must be a text/,
      ],
    ])("%s makes that call fail", async (_what, options, words) => {
      const { result, agent } = await played(options);
      expect(result.status).toBe("completed");
      expect((await toolTextsOf(agent)).join()).toMatch(words);
    });

    it("a transform of the output without a JSON result fails the turn", async () => {
      const cyclic: unknown[] = [];
      cyclic.push(cyclic);
      const model = adapter(() => rightAnswer, { generate: async () => ({ ...rightAnswer, content: '"x"' }) });
      const { result } = await played({ model, output: z.string().transform(() => cyclic) });
      expect(result).toMatchObject({ status: "failed", error: { code: "output_invalid" } });
      expect(result.error?.message).toMatch(
        /the schema's output is not valid JSON: .*more than 200 levels, or a cycle/,
      );
    });

    it("a rejected call that is not awaited does not end the process", async () => {
      const { result } = await played(withTool((run) => void run.saveArtifact(wrong(null))));
      expect(result.status).toBe("completed");
    });
  },
  ["memory", "sqlite"],
);

it.each<[string, () => unknown, RegExp]>([
  ["a model's name", () => worker({ model: { ...adapter(() => rightAnswer), name: wrong(5) } }), /model\.name is 5/],
  [
    "a model's window",
    () => worker({ model: { ...adapter(() => rightAnswer), contextWindow: -1 } }),
    /contextWindow is -1/,
  ],
  ["a compiler", () => worker({ history: wrong("all") }), /history is the text "all"; expected a history compiler/],
  [
    "a compiler's window of messages",
    () => worker({ history: { name: "x", internalTools: true, contextWindowSize: 0.5, compile: () => [] } }),
    /history\.contextWindowSize is 0\.5; expected a whole number/,
  ],
  [
    "a strategy's name",
    () => worker({ autoCompact: { strategy: { name: wrong(null), compact: async () => null } } }),
    /autoCompact\.strategy\.name is null; expected a name/,
  ],
])("%s is validated in defineAgent()", (_what, options, words) => {
  expect(() => defineAgent(options() as AgentOptions)).toThrow(words);
});

describeRuntimes(
  "the small ports of a runtime",
  (stage) => {
    it("NaN from random() and an inspector that throws change nothing", async () => {
      const warned = vi.spyOn(process, "emitWarning").mockReturnValue();
      const definition = defineAgent(worker());
      const runtime = await stage().open({
        agents: [definition],
        random: () => Number.NaN,
        onInspect: brokenInspector,
      });
      const agent = await runtime.agent("worker", { agentId: "worker-1" });
      await agent.start();
      expect((await agent.executeTurn("go").result).status).toBe("completed");
      expect(warned.mock.calls).toEqual([
        ["onInspect failed; the observed work continues: broken inspector", { code: "TROUPE_OBSERVER" }],
      ]);
    });

    it("an invalid actor from resolveAuth fails the turn with a clear error", async () => {
      const needs = defineTool({
        name: "probe",
        description: "Probes.",
        parameters: z.object({}),
        effect: "none",
        auth: "required",
        execute: () => "x",
      });
      const definition = defineAgent(worker({ model: adapter(() => callOf("probe")), tools: [needs] }));
      const runtime = await stage().open({ agents: [definition], resolveAuth, mayDecide });
      const agent = await runtime.agent("worker", { agentId: "worker-1" });
      await agent.start();
      const result = await agent.executeTurn("go", { auth: { actorId: "anna" } }).result;
      expect(result.error?.message).toMatch(
        /resolveAuth returned an object with actorId 7; expected \{ actorId: string/,
      );
    });

    it("a mayDecide() that returns neither true nor false refuses the decision", async () => {
      const asks = defineTool({
        name: "probe",
        description: "Probes.",
        parameters: z.object({}),
        effect: "none",
        needsApproval: true,
        execute: () => "x",
      });
      const definition = defineAgent(worker({ model: adapter(() => callOf("probe")), tools: [asks] }));
      const runtime = await stage().open({ agents: [definition], mayDecide });
      const agent = await runtime.agent("worker", { agentId: "worker-1" });
      await agent.start();
      const turn = agent.executeTurn("go");
      await turn.settled;
      const [request] = await runtime.requests();
      const deciding = runtime.decide(request?.requestId ?? "", { verdict: "approved" });
      await expect(deciding).rejects.toThrow('mayDecide returned the text "no"; expected true or false');
      await turn.abort("it was only a question");
    });
  },
  ["memory"],
);

it("a clock that returns NaN is refused; if it starts to do so later, it stands still", async () => {
  const clock = createFakeClock();
  const agents = [defineAgent(worker())];
  await expect(createRuntime({ agents, clock: { ...clock, now: () => Number.NaN } })).rejects.toThrow(
    "clock: now() returned NaN; expected milliseconds, a number of at least 0",
  );
  await expect(createRuntime({ agents, clock: wrong({}) })).rejects.toThrow(InvalidInputError);
  let isBroken = false;
  const broken = { ...clock, now: () => (isBroken ? Number.NaN : 1_234.5) };
  const runtime = await createRuntime({ agents, clock: broken });
  const agent = await runtime.agent("worker");
  await agent.start();
  isBroken = true;
  expect((await agent.executeTurn("go").result).status).toBe("completed");
  expect((await agent.getMessages()).map(({ createdAt }) => createdAt)).toEqual([1_234, 1_234]);
  await runtime.shutdown();
});
