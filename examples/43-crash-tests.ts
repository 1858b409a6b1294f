// Plays random programs against an agent whose processes die. The first payment service ignores the keys of requests.
import { defineAgent, defineTool, type AgentDefinition } from "troupe";
import { scriptedModel, simulate, type SimulatedSurroundings } from "troupe/testing";
import { z } from "zod";

class Payments {
  readonly #surroundings: SimulatedSurroundings;
  readonly #keys = new Set<string>();
  readonly #dropsDuplicates: boolean;

  constructor(surroundings: SimulatedSurroundings, dropsDuplicates: boolean) {
    this.#surroundings = surroundings;
    this.#dropsDuplicates = dropsDuplicates;
  }

  async refund(order: string, key: string, signal: AbortSignal): Promise<string> {
    await this.#surroundings.clock.sleep(20, signal);
    if (!this.#dropsDuplicates || !this.#keys.has(key)) {
      this.#keys.add(key);
      this.#surroundings.effect("refund", { order });
    }
    return `Refunded ${order}.`;
  }
}

function deskOf(payments: Payments): AgentDefinition {
  const refund = defineTool({
    name: "refund",
    description: "Pays the money back.",
    parameters: z.object({ order: z.string() }),
    effect: "keyed",
    execute: ({ order }, run) => payments.refund(order, run.idempotencyKey, run.signal),
  });
  return defineAgent({ name: "desk", model: scriptedModel("never asked"), tools: [refund] });
}

for (const dropsDuplicates of [false, true]) {
  const report = await simulate(
    { world: (surroundings) => new Payments(surroundings, dropsDuplicates), agent: deskOf },
    { programs: 60 },
  );
  const found = report.faults[0] ?? `no faults in ${report.programs} programs with ${report.deaths} deaths`;
  console.log(dropsDuplicates ? "duplicates are dropped:" : "keys are ignored:", found);
}
