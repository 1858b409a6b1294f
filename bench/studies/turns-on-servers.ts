import { sideOf } from "../conversations.ts";
import { contenderOn } from "../ours/index.ts";
import { type Scenario, scenarios } from "../scenario.ts";
import type { Pair, Study } from "../study.ts";

function scenarioOf(name: string, changes: Partial<Scenario>): Scenario {
  const scenario = scenarios.find((one) => one.name === name);
  if (!scenario) throw new Error(`There is no scenario ${name}.`);
  return { ...scenario, unit: "ms/turn", ...changes };
}

const variants: readonly { readonly variant: string; readonly scenario: Scenario }[] = [
  { variant: "turns", scenario: scenarioOf("turns-1", { conversations: { full: 20, quick: 5 } }) },
  { variant: "turns, 64 at a time", scenario: scenarioOf("turns-64", {}) },
  { variant: "loop", scenario: scenarioOf("loop-10", { conversations: { full: 15, quick: 5 } }) },
];

/** The same turns on a server, in memory, on SQLite, and on SQLite that syncs every commit like the server. */
function turnsOn(stores: "redis" | "postgres", server: string): Study {
  return {
    name: `${stores}-turn`,
    title: `turns of one call, and of ten steps, on ${server} against memory and SQLite`,
    unit: "ms/turn",
    plan: (quick) => (quick ? { warmUps: 2, rounds: 7 } : { warmUps: 4, rounds: 21 }),
    pairs: async (quick) => pairsOn(stores, quick),
  };
}

export const redisTurn: Study = turnsOn("redis", "Redis");
export const postgresTurn: Study = turnsOn("postgres", "Postgres");

function pairsOn(stores: "redis" | "postgres", quick: boolean): Pair[] {
  return variants.flatMap(({ variant, scenario }): Pair[] => {
    const conversations = scenario.conversations[quick ? "quick" : "full"];
    const ours = sideOf(scenario, contenderOn(stores), conversations);
    const over = {
      memory: contenderOn("memory"),
      SQLite: contenderOn("sqlite"),
      "SQLite, full": contenderOn("sqlite", { durability: "full" }),
    };
    return Object.entries(over).map(([name, contender]) => ({
      stores,
      variant: `${variant}, over ${name}`,
      ours,
      bare: sideOf(scenario, contender, conversations),
    }));
  });
}
