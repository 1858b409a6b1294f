// Runs a turn of the stubbed desk, until a fault kills the process.
import { createRuntime } from "troupe";
import { sqliteStores } from "troupe/stores/sqlite";
import { look, rounds, stubbedDesk, stubs } from "../support/stubbed-desk.ts";

/** The first call uses up a stub; the second one has another. */
export const killedTurn = rounds(look("7"), look("7"), look("7"));

if (import.meta.main) {
  const [database = "", file = ""] = process.argv.slice(2);
  const { desk } = stubbedDesk({}, file);
  const runtime = await createRuntime({ agents: [desk], stores: sqliteStores(database) });
  const agent = await runtime.agent(desk, { agentId: "shop", stubs });
  await agent.start();
  await agent.executeTurn(killedTurn).result;
  await runtime.shutdown();
}
