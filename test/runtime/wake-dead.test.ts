import { expect, it } from "vitest";
import { createRuntime, defineAgent, memoryStores } from "../../src/index.ts";
import type { DeadCause } from "../../src/queues/index.ts";
import { onDeadWake, type WakeDependencies } from "../../src/runtime/work/wakes.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { createGate } from "../support/turn-probes.ts";

const died: DeadCause = { code: "worker_died", message: "two workers died of it", deaths: 2 };
const failed: DeadCause = { code: "failed", message: "no worker could take it up", deaths: 0 };

it.each([
  { cause: died, knows: true, ends: true },
  { cause: died, knows: false, ends: true },
  { cause: failed, knows: true, ends: true },
  { cause: failed, knows: false, ends: false },
])(
  "a wake that was given up ($cause.code, definition known: $knows) stops its turn: $ends",
  async ({ cause, knows, ends }) => {
    const gate = createGate<string>();
    const stores = memoryStores();
    const clerk = defineAgent({ name: "clerk", model: scriptedModel(() => gate.reached().then(() => "never")) });
    const runtime = await createRuntime({ agents: [clerk], stores });
    const agent = await runtime.agent("clerk", { agentId: "c" });
    await agent.start();
    const turn = agent.executeTurn("go");
    turn.result.catch(() => undefined);
    await turn.id;
    const told: string[] = [];
    const definitions = new Map(knows ? [["clerk", clerk]] : []);
    const damage = { of: () => undefined };
    const place = { stores, tenant: "default", clock: { now: () => 1_000 }, definitions, damage };
    const hearing = { ...place, notify: (agentIds: readonly string[]) => told.push(...agentIds) };
    await onDeadWake(hearing as unknown as WakeDependencies, { kind: "wake", tenant: "default", agentId: "c" }, cause);
    const record = await stores.readAgent({ tenant: "default", agentId: "c" });
    expect(record?.abort?.reason).toBe(ends ? `the turn was given up: ${cause.message}` : undefined);
    expect(told).toEqual(ends ? ["c"] : []);
    await runtime.shutdown();
  },
);
