import { createRuntime } from "../../src/index.ts";
import type { SqliteOptions } from "../../src/stores/sqlite.ts";
import type { Contender, Entrant } from "../contender.ts";
import type { Scenario } from "../scenario.ts";
import { agentOf } from "./agents.ts";
import { type OpenStores, openStores, type StoreKind } from "./open-stores.ts";

type Runtime = Awaited<ReturnType<typeof createRuntime>>;
type Definition = ReturnType<typeof agentOf>;
type Agent = Awaited<ReturnType<Runtime["agent"]>>;

export const oursInMemory: Contender = contenderOn("memory");
export const oursOnSqlite: Contender = contenderOn("sqlite");

/** `definitionOf` returns the agent of a scenario. Default: the agent from `agents.ts`. */
export function contenderOn(kind: StoreKind, options: SqliteOptions = {}, definitionOf = agentOf): Contender {
  return {
    name: kind,
    prepare: async (scenario, baseUrl) => {
      return await entrantOn(await openStores(kind, options), scenario, definitionOf(scenario, baseUrl));
    },
  };
}

async function entrantOn({ stores, remove }: OpenStores, scenario: Scenario, definition: Definition): Promise<Entrant> {
  const runtime = await createRuntime({ agents: [definition], stores });
  const answer = scenario.agent === "streaming" ? streamedAnswer : wholeAnswer;
  let opened = 0;
  return {
    open: async () => {
      opened += 1;
      const agent = await runtime.agent("agent", { agentId: `conversation-${opened}` });
      await agent.start();
      return { turn: (input) => answer(agent, input), close: () => agent.shutdown() };
    },
    close: async () => {
      await runtime.shutdown();
      await remove();
    },
  };
}

/** Throws unless the turn completed. */
export async function wholeAnswer(agent: Agent, input: string): Promise<string> {
  const { status, text, stopReason } = await agent.executeTurn(input).result;
  if (status !== "completed") throw new Error(`A turn ended ${status}, stop reason ${stopReason}.`);
  return text;
}

/** Follows the turn and joins the text from its pieces, as a terminal would. */
async function streamedAnswer(agent: Agent, input: string): Promise<string> {
  const turn = agent.executeTurn(input);
  let text = "";
  for await (const event of turn) if (event.type === "text.delta") text += event.text;
  const { status, stopReason } = await turn.result;
  if (status !== "completed") throw new Error(`A turn ended ${status}, stop reason ${stopReason}.`);
  return text;
}
