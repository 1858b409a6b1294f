import { expect, test } from "vitest";
import type { ForeignWrite, ForeignWrites } from "../../src/stores/index.ts";
import { note } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT } from "./names.ts";
import { agentKey, elsewhere, openAgent, ready } from "./stores-fixtures.ts";
import { until } from "./stores-live.contract.ts";
import type { TwoClients } from "./stores-sharing.contract.ts";
import { openChild } from "./tree-fixtures.ts";

/** The contract of stores that name the writes of other processes. */
export function noticesContract(open: () => TwoClients): void {
  test("a notice of another process's write names the tree, changed inboxes and records, and the first timer", async () => {
    const { mine, theirs } = open();
    const heard: ForeignWrites[] = [];
    const end = mine.onForeignWrite((writes) => heard.push(writes));
    await until(() => heard.length > 0);
    expect(heard[0]).toBe("any");
    await untilHeard({ mine, theirs }, heard);
    heard.length = 0;
    const root = await openAgent(theirs, { turnBudget: { deadline: NOW + 7000 } });
    const kid = await openChild(root, "kid");
    await kid.commit({ entries: [note("an unchanged inbox")] });
    await kid.commit({ entries: [note("a record")], owned: { ...ready, lastActivity: NOW + 1 } });
    await theirs.pause(agentKey(), "ann", NOW);
    // Heartbeats are not reported.
    await theirs.heartbeat(elsewhere.processId, NOW);
    const writes = (): readonly ForeignWrite[] =>
      heard
        .flatMap((one) => (one === "any" ? [] : one.all))
        .filter(({ rootAgentId }) => !rootAgentId.startsWith(EARLIER));
    // The child's turn was posted to it alone, the pause to both.
    await until(() => writes().some(({ posted }) => posted?.length === 2));
    end();
    expect(heard).not.toContain("any");
    expect(new Set(writes().map((write) => `${write.tenant} ${write.rootAgentId}`))).toEqual(
      new Set([`${TENANT} ${ROOT}`]),
    );
    // The warning is due first, at 80 % of the time.
    expect(writes().flatMap(({ timerAt }) => timerAt ?? [])).toEqual([NOW + 5600]);
    expect(writes().at(-1)?.posted?.toSorted()).toEqual([ROOT, kid.key.agentId].toSorted());
    const records = writes().map((write) => write.records);
    expect(records).toContainEqual([]);
    expect(records).toContainEqual([kid.key.agentId]);
    expect(records.at(-1)).toEqual([ROOT]);
    await mine.close();
    await theirs.close();
  });
}

/** Begins the ids of the trees that are written before the test. */
const EARLIER = "earlier-";

/**
 * Resolves once `mine` has received the notice of a tree and all reports of its start. On a busy server it starts to listen late, and
 * reports writes of any kind every second before.
 */
async function untilHeard({ mine, theirs }: TwoClients, heard: readonly ForeignWrites[]): Promise<void> {
  for (let count = 1; !heard.some((writes) => writes !== "any"); count += 1) {
    await openAgent(theirs, { agentId: `${EARLIER}${count}` });
  }
  // A channel that is subscribed now is heard after everything that the subscription of writes reports.
  const followed = { tenant: TENANT, rootAgentId: EARLIER, processId: "follower" };
  mine.live.onAsked(elsewhere.processId, () => undefined);
  const following = theirs.live.follow(followed, () => undefined);
  await until(() => mine.live.isFollowed({ ...followed, processId: elsewhere.processId }));
  following.end();
}
