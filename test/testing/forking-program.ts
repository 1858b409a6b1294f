// A desk whose process is killed: while its tool pays ("origin"), or in a fork, while its tool looks ("fork").
import { appendFileSync } from "node:fs";
import { createRuntime, defineAgent, defineTool } from "troupe";
import { sqliteStores } from "troupe/stores/sqlite";
import { fork, scriptedModel } from "troupe/testing";

/** A desk that pays, looks and answers. Payments are lines of the file. */
export function deskOf(payments: string, reached: (tool: "pay" | "look") => Promise<void>) {
  return defineAgent({
    name: "desk",
    model: scriptedModel((_request, { call }) => {
      const name = ["pay", "look"][(call?.step ?? 1) - 1];
      return name === undefined ? "Done." : { toolCalls: [{ name }] };
    }),
    tools: [
      defineTool({
        name: "pay",
        description: "Pays.",
        parameters: '{"type":"object"}',
        effect: "once",
        async execute() {
          appendFileSync(payments, "payment\n");
          await reached("pay");
          return "paid";
        },
      }),
      defineTool({
        name: "look",
        description: "Looks.",
        parameters: '{"type":"object"}',
        effect: "none",
        async execute() {
          await reached("look");
          return "seen";
        },
      }),
    ],
  });
}

if (import.meta.main) {
  const [mode = "", database = "", payments = ""] = process.argv.slice(2);
  let forkId = "";
  const desk = deskOf(payments, async () => {
    console.log(forkId);
    // The test kills the process.
    await new Promise((resolve) => setTimeout(resolve, 600_000));
  });
  const runtime = await createRuntime({ agents: [desk], stores: sqliteStores(database) });
  if (mode === "origin") {
    const agent = await runtime.agent(desk, { agentId: "shop" });
    await agent.start();
    await agent.executeTurn("Pay.").result;
  } else {
    runtime.subscribe(({ agentId }) => {
      forkId = agentId;
    });
    const made = await fork({ stores: runtime.stores, agentId: "shop" }, { at: { turn: 1, step: 1 }, runtime });
    await made.turn.result;
  }
}
