import { type Door, nameRule, optionsOf, reading, textRule } from "../base/index.ts";
import { budgetRule, type Limits, limitsOf } from "../budget/index.ts";
import type { SpawnOptions } from "./run-context.ts";

const spawnDoor: Door<SpawnOptions> = {
  rules: {
    key: (value, where) => nameRule(value, `${where}, which names the child within its call,`),
    budget: budgetRule,
  },
  needed: ["key"],
  instead: { name: "key", id: "key", limits: "budget" },
};

/** What a tool's code asks of a child, checked whole. */
export interface CheckedSpawn {
  readonly key: string;
  readonly input: string;
  readonly limits: Limits;
}

/** Throws `InvalidInputError` for what `run.spawn()` cannot take. */
export function checkedSpawn(input: unknown, options: unknown): CheckedSpawn {
  const prompt = reading("run.spawn()", () => textRule(input, "run.spawn(): the child's input"));
  const { key, budget } = optionsOf<SpawnOptions>(options, "run.spawn()", spawnDoor);
  return { key, input: String(prompt), limits: limitsOf((budget ?? {}) as Parameters<typeof limitsOf>[0]) };
}
