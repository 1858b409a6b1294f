import { createRuntime, defineAgent, windowHistory } from "../../src/index.ts";
import { bare } from "../bare/index.ts";
import type { Contender, Conversation } from "../contender.ts";
import { answerText } from "../model-answers.ts";
import { contenderOn, wholeAnswer } from "../ours/index.ts";
import { instantModel } from "../ours/instant-model.ts";
import { openStores, type StoreKind, storeKinds } from "../ours/open-stores.ts";
import { instructions, type Scenario, userInput } from "../scenario.ts";
import { type Pair, type Side, type Study, timed } from "../study.ts";

export interface LateTurnOptions {
  readonly turn: number;
  /** How many agents have reached turn N, and how many turns each takes in a sample. */
  readonly agents: { readonly full: number; readonly quick: number };
  readonly turnsPerSample: number;
  /** Whether to also measure prompts with the whole conversation, against a bare conversation of that length. */
  readonly withFullHistory: boolean;
}

/**
 * The cost of turns late in an agent's life. `window`: turn N of an agent whose model sees only the open turn, against
 * other agents' first turn, with the model in this process. `full`: turn N with a prompt of all turns, against turn N of
 * the bare loop, over HTTP. The rounds continue from turn N, so the last round is some turns later.
 */
export function lateTurn({ turn, agents, turnsPerSample, withFullHistory }: LateTurnOptions): Study {
  return {
    name: `turn-${turn}`,
    title: `turn ${turn} of an agent against its first one${withFullHistory ? ", or against the bare loop's" : ""}`,
    unit: "ms/turn",
    plan: (quick) => (quick ? { warmUps: 2, rounds: 7 } : { warmUps: 4, rounds: 21 }),
    pairs: async (quick) => {
      const count = agents[quick ? "quick" : "full"];
      const late = (contender: Contender): Side => lateSide(contender, { turn, count, turnsPerSample });
      const pairs = storeKinds.map((stores): Pair => {
        const contender = windowed(stores);
        return { stores, variant: "window", ours: late(contender), bare: firstSide(contender, count * turnsPerSample) };
      });
      if (!withFullHistory) return pairs;
      const bareLate = late(bare);
      return [
        ...pairs,
        ...storeKinds.map(
          (stores): Pair => ({ stores, variant: "full", ours: late(contenderOn(stores)), bare: bareLate }),
        ),
      ];
    },
  };
}

/** Unstreamed answers of a plain agent, one conversation at a time. */
export const conversationScenario: Scenario = {
  name: "late-turn",
  title: "",
  agent: "plain",
  model: "one",
  parallel: 1,
  turns: 1,
  callsPerTurn: 1,
  conversations: { full: 1, quick: 1 },
  unit: "ms/turn",
};

/** Agents whose model sees only the open turn, so that the prompt is the same in every turn. */
export function windowed(kind: StoreKind): Contender {
  return {
    name: `${kind}, window`,
    prepare: async () => {
      const { stores, remove } = await openStores(kind);
      const definition = defineAgent({
        name: "agent",
        model: instantModel(1),
        instructions,
        history: windowHistory(1, { upTo: 1 }),
        budget: { maxTokens: 1_000_000 },
      });
      const runtime = await createRuntime({ agents: [definition], stores });
      const open = async (): Promise<Conversation> => {
        const agent = await runtime.agent("agent");
        await agent.start();
        return { turn: (input) => wholeAnswer(agent, input), close: () => agent.shutdown() };
      };
      const close = async (): Promise<void> => {
        await runtime.shutdown();
        await remove();
      };
      return { open, close };
    },
  };
}

/** Measures the first turns of new conversations, without opening them. */
export function firstSide(contender: Contender, conversations: number): Side {
  return {
    name: `turn 1, ${contender.name}`,
    prepare: async ({ baseUrl }) => {
      const entrant = await contender.prepare(conversationScenario, baseUrl);
      const sample = async () => {
        const opened: Conversation[] = [];
        for (let index = 0; index < conversations; index += 1) opened.push(await entrant.open());
        const sampled = await takeTurns(opened, 1);
        for (const conversation of opened) await conversation.close?.();
        return sampled;
      };
      return { sample, close: () => entrant.close() };
    },
  };
}

interface LateSideOptions {
  readonly turn: number;
  readonly count: number;
  readonly turnsPerSample: number;
}

/** The earlier turns run while the side is prepared. */
export function lateSide(contender: Contender, { turn, count, turnsPerSample }: LateSideOptions): Side {
  return {
    name: `turn ${turn}, ${contender.name}`,
    prepare: async ({ baseUrl }) => {
      const entrant = await contender.prepare(conversationScenario, baseUrl);
      const opened: Conversation[] = [];
      for (let index = 0; index < count; index += 1) opened.push(await entrant.open());
      await takeTurns(opened, turn - 1);
      return { sample: () => takeTurns(opened, turnsPerSample), close: () => entrant.close() };
    },
  };
}

export async function takeTurns(conversations: readonly Conversation[], turns: number) {
  const { elapsedMs, processorMs } = await timed(async () => {
    for (let turn = 0; turn < turns; turn += 1) {
      for (const conversation of conversations) {
        const text = await conversation.turn(userInput);
        if (text !== answerText) throw new Error(`late-turn: expected the answer ${answerText}, got ${text}.`);
      }
    }
  });
  const taken = conversations.length * turns;
  return { value: elapsedMs / taken, processorMs: processorMs / taken };
}
