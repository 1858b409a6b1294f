import { expect, test } from "vitest";
import type { Stores } from "../../src/stores/index.ts";
import { NOW, ROOT } from "./names.ts";
import { CALL, ended, withQueued } from "./queued-fixtures.ts";
import { elsewhere, here, agentKey, LEASE_MS } from "./stores-fixtures.ts";

export function sharingQueuedContract(clients: () => { readonly mine: Stores; readonly theirs: Stores }): void {
  test("of many claims of a queued call one wins, and of many reports of its end one is accepted", async () => {
    const { mine, theirs } = clients();
    await withQueued(mine);
    await theirs.registerProcess(elsewhere, NOW);
    const both = Array.from({ length: 40 }, (_, index) => (index % 2 ? mine : theirs));
    const claims = await Promise.all(
      both.map((stores) => {
        const { processId } = stores === mine ? here : elsewhere;
        return stores.claimCall(agentKey(), { callId: CALL, attempt: 1, processId, leaseMs: LEASE_MS }, NOW);
      }),
    );
    expect(claims.filter(({ type }) => type === "claimed")).toHaveLength(1);
    const told = await Promise.all(both.map((stores, index) => stores.postCallEnd(agentKey(), ended(`${index}`))));
    expect(told.flatMap(({ posted }) => posted)).toEqual([ROOT]);
    expect(await theirs.inbox(agentKey())).toHaveLength(1);
  });
}
