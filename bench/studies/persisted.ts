import { bareOnSqlite } from "../bare/index.ts";
import type { Durability } from "../bare/sqlite-messages.ts";
import { sideOf } from "../conversations.ts";
import { contenderOn } from "../ours/index.ts";
import type { Scenario } from "../scenario.ts";
import type { Pair, Study } from "../study.ts";

const turns: Scenario = {
  name: "persisted",
  title: "",
  agent: "plain",
  model: "one",
  parallel: 1,
  turns: 5,
  callsPerTurn: 1,
  conversations: { full: 30, quick: 10 },
  unit: "ms/turn",
};
const loop: Scenario = {
  ...turns,
  agent: "tools",
  model: "loop-10",
  turns: 1,
  callsPerTurn: 10,
  conversations: { full: 15, quick: 5 },
};

const variants: readonly { readonly variant: string; readonly scenario: Scenario; readonly durability: Durability }[] =
  [
    { variant: "turns", scenario: turns, durability: "process" },
    { variant: "loop", scenario: loop, durability: "process" },
    { variant: "loop, full", scenario: loop, durability: "full" },
  ];

/** Troupe on SQLite against a loop with hand-written durability. Both write before they continue. */
export const persisted: Study = {
  name: "persisted",
  title: "on SQLite, against a bare loop with one hand-written transaction per message and the same pragmas",
  unit: "ms/turn",
  plan: (quick) => (quick ? { warmUps: 2, rounds: 7 } : { warmUps: 24, rounds: 21 }),
  pairs: async (quick) =>
    variants.map(({ variant, scenario, durability }): Pair => {
      const conversations = scenario.conversations[quick ? "quick" : "full"];
      return {
        stores: "sqlite",
        variant,
        ours: sideOf(scenario, contenderOn("sqlite", { durability }), conversations),
        bare: sideOf(scenario, bareOnSqlite(durability), conversations),
      };
    }),
};
