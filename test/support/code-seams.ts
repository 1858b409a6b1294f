import { z } from "zod";
import {
  AgentStopError,
  type Compaction,
  defineTool,
  type HistoryCompiler,
  type HookName,
  type Hooks,
  type LanguageModel,
  subagent,
} from "../../src/index.ts";
import { hookNames } from "../../src/state/index.ts";
import { adapter, callOf, childDefinition, type Foreign, rightAnswer, type Seam, worker } from "./seam-play.ts";

const nothing = z.object({});
const callsTool = (): LanguageModel => adapter(() => callOf("probe"));

/** A hook that uses its draft or its run; every hook point of a turn is reached. */
function hook(name: string, at: HookName, code: (draft: never, run: never, foreign: Foreign) => unknown): Seam {
  const failing = defineTool({
    name: "probe",
    description: "Fails.",
    parameters: nothing,
    effect: "none",
    execute: () => {
      throw new Error("as it must for onError");
    },
  });
  return {
    name: `${at}: ${name}`,
    define: (foreign) => {
      const hooks = {
        [at]: async (draft: never, run: never): Promise<void> => {
          if (foreign.isOn) await code(draft, run, foreign);
        },
      } as Hooks;
      return worker({ model: callsTool(), tools: [failing], hooks });
    },
  };
}

type Draft = Readonly<Record<string, (...given: unknown[]) => unknown>> & {
  readonly messages?: readonly { readonly id: string }[];
  readonly calls?: readonly { readonly callId: string }[];
};

function draftHook(name: string, at: HookName, code: (draft: Draft, foreign: Foreign) => unknown): Seam {
  return hook(name, at, (draft, _run, foreign) => code(draft as unknown as Draft, foreign));
}

type Run = Readonly<Record<"generate" | "emitWarning", (...given: unknown[]) => unknown>>;

function runHook(name: string, code: (run: Run, foreign: Foreign) => unknown): Seam {
  return hook(name, "beforeLlm", (_draft, run, foreign) => code(run as unknown as Run, foreign));
}

function compaction(name: string, compact: (foreign: Foreign, through: string) => unknown): Seam {
  return {
    name: `compaction: ${name}`,
    define: (foreign) => {
      const strategy = {
        name: "foreign",
        compact: async ({ messages }: { readonly messages: readonly { readonly id: string }[] }) =>
          (foreign.isOn ? await compact(foreign, messages[0]?.id ?? "") : null) as Compaction | null,
      };
      return worker({ model: callsTool(), maxMessages: 1, autoCompact: { strategy } });
    },
  };
}

function history(name: string, compile: (foreign: Foreign, right: readonly unknown[]) => unknown): Seam {
  return {
    name: `history: ${name}`,
    define: (foreign) => {
      const compiler: HistoryCompiler = {
        name: "foreign",
        internalTools: false,
        compile: ({ history: all }) => (foreign.isOn ? compile(foreign, all) : all) as typeof all,
      };
      return worker({ history: compiler });
    },
  };
}

const question = { role: "user", content: "what?" };

/** All user code of an agent: hooks, tools, plugins, strategies. */
export const codeSeams: readonly Seam[] = [
  { name: "instructions()", define: (foreign) => worker({ instructions: () => foreign.or("right") }) },
  {
    name: "instructions() that throws",
    define: (foreign) =>
      worker({
        instructions: () => {
          foreign.thrown();
          return "right";
        },
      }),
  },
  ...hookNames.map((at) => hook("throws", at, (_draft, _run, foreign) => foreign.thrown())),
  draftHook("add()", "afterUserInput", (draft, foreign) => draft["add"]?.(foreign.or({}))),
  draftHook("add({ role })", "afterLlm", (draft, foreign) =>
    draft["add"]?.({ role: foreign.or("user"), content: "x" }),
  ),
  draftHook("add({ content })", "afterLlm", (draft, foreign) =>
    draft["add"]?.({ role: "user", content: foreign.or("x") }),
  ),
  draftHook("add() of a part", "onComplete", (draft, foreign) =>
    draft["add"]?.({ role: "user", content: [{ type: "text", text: foreign.or("x") }] }),
  ),
  draftHook("edit()", "beforeLlm", (draft, foreign) => draft["edit"]?.(draft.messages?.[0]?.id, foreign.or("x"))),
  draftHook("remove()", "beforeLlm", (draft, foreign) => draft["remove"]?.(foreign.or("x"))),
  draftHook("changeArguments()", "afterLlm", (draft, foreign) =>
    draft["changeArguments"]?.(draft.calls?.[0]?.callId, foreign.or({})),
  ),
  draftHook("an argument", "beforeTools", (draft, foreign) =>
    draft["changeArguments"]?.(draft.calls?.[0]?.callId, { value: foreign.or("x") }),
  ),
  draftHook("deny()", "beforeTools", (draft, foreign) => draft["deny"]?.(draft.calls?.[0]?.callId, foreign.or("x"))),
  draftHook("changeArguments()", "beforeEachTool", (draft, foreign) => draft["changeArguments"]?.(foreign.or({}))),
  draftHook("deny()", "beforeEachTool", (draft, foreign) => draft["deny"]?.(foreign.or("x"))),
  draftHook("stop()", "afterTools", (draft, foreign) => draft["stop"]?.(foreign.or("x"))),
  runHook("emitWarning()", (run, foreign) => run.emitWarning(foreign.or("code"), "x")),
  runHook("emitWarning(), its message", (run, foreign) => run.emitWarning("code", foreign.or("x"))),
  runHook("generate()", (run, foreign) => run.generate(foreign.or({}))),
  runHook("generate({ messages })", (run, foreign) => run.generate({ messages: foreign.or([]) })),
  runHook("generate(), a content", (run, foreign) =>
    run.generate({ messages: [{ ...question, content: foreign.or("x") }] }),
  ),
  runHook("generate({ maxOutputTokens })", (run, foreign) =>
    run.generate({ messages: [question], maxOutputTokens: foreign.or(5) }),
  ),
  runHook("AgentStopError, its details", (_run, foreign) => {
    const details = { isRefusal: true, limit: foreign.or("x"), accountId: foreign.or("x"), used: foreign.or("x") };
    throw Object.defineProperty(new AgentStopError("stop"), "details", { value: details });
  }),
  runHook("AgentStopError, its message", (_run, foreign) => {
    throw Object.defineProperty(new AgentStopError("stop"), "message", { value: foreign.or("x") });
  }),
  {
    name: "an answer to generate()",
    define: (foreign) =>
      worker({
        model: adapter(() => foreign.or(rightAnswer)),
        hooks: {
          async beforeLlm(_draft, run) {
            await run.generate({ messages: [{ role: "user", content: "what?" }] });
          },
        },
      }),
  },
  compaction("its result", (foreign) => foreign.or(null)),
  compaction("summary", (foreign, through) => ({ through, summary: foreign.or("x") })),
  compaction("keepIds", (foreign, through) => ({ through, summary: "x", keepIds: [foreign.or("x")] })),
  compaction("through", (foreign) => ({ through: foreign.or("x"), summary: "x" })),
  compaction("throws", (foreign) => foreign.thrown()),
  history("its result", (foreign) => foreign.or([])),
  history("a message", (foreign, right) => [...right, foreign.or({})]),
  history("throws", (foreign) => foreign.thrown()),
  {
    name: "subagent({ input })",
    define: (foreign) =>
      worker({
        model: adapter(() => callOf("child", { input: "x" })),
        tools: [subagent(childDefinition, { input: () => foreign.or("x") })],
      }),
  },
  {
    name: "an output's transform",
    define: (foreign) =>
      worker({
        model: adapter(() => ({ ...rightAnswer, content: '"x"' }), {
          generate: async () => ({ ...rightAnswer, content: '"x"' }),
        }),
        output: z.string().transform(() => foreign.or("x")),
      }),
  },
  {
    name: "an output's transform that throws",
    define: (foreign) =>
      worker({
        model: adapter(() => rightAnswer, { generate: async () => ({ ...rightAnswer, content: '"x"' }) }),
        output: z.string().transform((text) => {
          foreign.thrown();
          return text;
        }),
      }),
  },
];
