import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRuntime } from "../../src/index.ts";
import { memoryStores } from "../../src/stores/memory.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import type { Contender, Entrant } from "../contender.ts";
import type { Scenario } from "../scenario.ts";
import { agentOf } from "./agents.ts";

type RuntimeOptions = Parameters<typeof createRuntime>[0];
type Runtime = Awaited<ReturnType<typeof createRuntime>>;
type Agent = Awaited<ReturnType<Runtime["agent"]>>;

export const oursInMemory: Contender = {
  name: "memory",
  prepare: (scenario, baseUrl) => entrantOn(memoryStores(), scenario, baseUrl),
};

/** On a file of its own in the system's temporary folder, with the default durability. */
export const oursOnSqlite: Contender = {
  name: "sqlite",
  prepare: async (scenario, baseUrl) => {
    const folder = mkdtempSync(join(tmpdir(), "troupe-bench-"));
    const remove = (): void => rmSync(folder, { recursive: true, force: true });
    // Ctrl-C in the middle of a round ends the process without closing the entrant.
    process.once("exit", remove);
    const entrant = await entrantOn(sqliteStores(join(folder, "bench.db")), scenario, baseUrl);
    const close = async (): Promise<void> => {
      await entrant.close();
      process.off("exit", remove);
      remove();
    };
    return { ...entrant, close };
  },
};

async function entrantOn(stores: RuntimeOptions["stores"], scenario: Scenario, baseUrl: string): Promise<Entrant> {
  const runtime = await createRuntime({ agents: [agentOf(scenario, baseUrl)], stores });
  const answer = scenario.agent === "streaming" ? streamedAnswer : wholeAnswer;
  let opened = 0;
  return {
    open: async () => {
      opened += 1;
      const agent = await runtime.agent("agent", { agentId: `conversation-${opened}` });
      await agent.start();
      return { turn: (input) => answer(agent, input) };
    },
    close: () => runtime.shutdown(),
  };
}

async function wholeAnswer(agent: Agent, input: string): Promise<string> {
  const { status, text, stopReason } = await agent.executeTurn(input).result;
  if (status !== "completed") throw new Error(`A turn ended ${status}, stop reason ${stopReason}.`);
  return text;
}

/** Listens to the turn and puts the text together from its pieces, as a terminal would show it. */
async function streamedAnswer(agent: Agent, input: string): Promise<string> {
  const turn = agent.executeTurn(input);
  let text = "";
  for await (const event of turn) if (event.type === "text.delta") text += event.text;
  const { status, stopReason } = await turn.result;
  if (status !== "completed") throw new Error(`A turn ended ${status}, stop reason ${stopReason}.`);
  return text;
}
