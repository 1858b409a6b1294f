import { type AgentOptions, type Budget, createRuntime, defineAgent, openaiModel } from "../../src/index.ts";
import { answerText } from "../model-answers.ts";
import { lookupTool } from "../ours/agents.ts";
import { wholeAnswer } from "../ours/index.ts";
import { instantModel } from "../ours/instant-model.ts";
import { openStores, type StoreKind, storeKinds } from "../ours/open-stores.ts";
import { instructions, userInput } from "../scenario.ts";
import { type Pair, type Side, type Study, timed } from "../study.ts";

const STEPS = 5;
const HOUR_MS = 3_600_000;

/** All limits, none of which is ever reached. */
function allLimits(): Budget {
  return {
    maxSteps: 20,
    maxTokens: 1_000_000,
    maxSeconds: 3600,
    maxCost: 100,
    deadline: Date.now() + HOUR_MS,
    maxToolCalls: 100,
    maxTreeSteps: 100,
    maxTreeToolCalls: 100,
    finalAnswer: true,
  };
}

/** The turn limits are set on the definition, the lifetime limits on the agent. */
const limits = {
  all: () => ({ turn: allLimits(), life: { budget: allLimits() } }),
  none: () => ({ turn: {}, life: {} }),
} as const;
type Limited = keyof typeof limits;

const variants = ["over HTTP", "in process"] as const;
type Variant = (typeof variants)[number];

/** A turn of five steps with every turn limit and lifetime limit set, against the same turn without limits. */
export const limitsOn: Study = {
  name: "limits-on",
  title: "a turn of 5 steps with all limits on, against the same turn with none",
  unit: "ms/turn",
  plan: (quick) => (quick ? { warmUps: 2, rounds: 11 } : { warmUps: 5, rounds: 201 }),
  pairs: async (quick) => limitsPairs(quick ? 10 : 8),
};

/** `turns`: turns per sample, each of another agent. */
export function limitsPairs(turns: number): readonly Pair[] {
  return variants.flatMap((variant) =>
    storeKinds.map((stores): Pair => {
      const side = (limited: Limited): Side => sideOf(stores, { limited, variant, turns });
      return { stores, variant, ours: side("all"), bare: side("none") };
    }),
  );
}

interface SideOptions {
  readonly limited: Limited;
  readonly variant: Variant;
  readonly turns: number;
}

function sideOf(kind: StoreKind, { limited, variant, turns }: SideOptions): Side {
  return {
    name: `limits ${limited}, ${kind}, ${variant}`,
    prepare: async ({ baseUrl }) => {
      const { stores, remove } = await openStores(kind);
      const model =
        variant === "in process"
          ? instantModel(STEPS)
          : openaiModel(`loop-${STEPS}`, { apiKey: "none", baseURL: baseUrl });
      const options: AgentOptions = { name: "agent", model, instructions, tools: [lookupTool], price };
      const { turn, life } = limits[limited]();
      const runtime = await createRuntime({ agents: [defineAgent({ ...options, budget: turn })], stores });
      return {
        sample: async () => {
          const agents = await Promise.all(Array.from({ length: turns }, () => runtime.agent("agent", life)));
          for (const agent of agents) await agent.start();
          const { elapsedMs, processorMs } = await timed(async () => {
            for (const agent of agents) {
              const text = await wholeAnswer(agent, userInput);
              if (text !== answerText) throw new Error(`limits-on: expected the answer ${answerText}, got ${text}.`);
            }
          });
          await Promise.all(agents.map((agent) => agent.shutdown()));
          return { value: elapsedMs / turns, processorMs: processorMs / turns };
        },
        close: async () => {
          await runtime.shutdown();
          await remove();
        },
      };
    },
  };
}

const price = { inputPerMillion: 0.25, outputPerMillion: 2 };
