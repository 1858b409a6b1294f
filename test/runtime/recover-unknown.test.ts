import { expect, test } from "vitest";
import { systemClock } from "../../src/base/index.ts";
import { NotFoundError } from "../../src/errors/index.ts";
import { TurnAuth } from "../../src/runtime/agent/turn-auth.ts";
import { TurnContexts } from "../../src/runtime/agent/turn-contexts.ts";
import { recoverAgent } from "../../src/runtime/placement/recovery.ts";
import { memoryStores } from "../../src/stores/index.ts";
import { note } from "../contracts/entry-fixtures.ts";
import { NOW, TENANT } from "../contracts/names.ts";
import { openTurn } from "../contracts/queued-fixtures.ts";
import { elsewhere, agentKey, LEASE_MS } from "../contracts/stores-fixtures.ts";

test("a process without the agent's definition never takes its lease, even if the owner may be dead", async () => {
  const stores = memoryStores();
  const owner = await openTurn(stores);
  await stores.registerProcess(elsewhere, NOW + 2 * LEASE_MS);
  const source = {
    stores,
    clock: { elapsed: () => NOW + 2 * LEASE_MS },
    leaseMs: LEASE_MS,
    present: async () => undefined,
    process: elsewhere,
    definitions: new Map(),
    auth: new TurnAuth({
      resolve: undefined,
      parentTurnOf: () => null,
      contexts: new TurnContexts(() => null),
      clock: systemClock,
    }),
  };
  const attempt = recoverAgent(source, agentKey(), { giveUp: async () => expect.unreachable("it has no lease") });
  await expect(attempt).rejects.toThrow(NotFoundError);
  await expect(attempt).rejects.toThrow('agent "desk" runs the definition "clerk", which this runtime does not know');
  // The owner was only slow and continues.
  await owner.commit({ entries: [note("goes on")] });
  expect(await stores.holder(agentKey())).toMatchObject({ epoch: owner.epoch });
  expect(await stores.unattended(TENANT, { processId: "x", leaseMs: LEASE_MS }, NOW + 2 * LEASE_MS)).toEqual([
    agentKey(),
  ]);
});
