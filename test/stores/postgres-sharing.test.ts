import { describe, expect, test } from "vitest";
import type { ForeignWrite, ForeignWrites } from "../../src/stores/index.ts";
import { note } from "../contracts/entry-fixtures.ts";
import { NOW, ROOT, TENANT } from "../contracts/names.ts";
import { elsewhere, agentKey, openAgent, ready } from "../contracts/stores-fixtures.ts";
import { describeLiveChannel, until } from "../contracts/stores-live.contract.ts";
import { sharingContract } from "../contracts/stores-sharing.contract.ts";
import { openChild } from "../contracts/tree-fixtures.ts";
import { postgresProgram } from "../support/postgres-server.ts";
import { postgresOfSuite } from "../support/postgres-suite.ts";

const place = (processId: string) => ({ tenant: TENANT, rootAgentId: ROOT, processId });

describe.skipIf(!postgresProgram)("Postgres, shared", () => {
  const postgres = postgresOfSuite();

  sharingContract("Postgres", () => postgres.two());
  describeLiveChannel("Postgres", async () => {
    const { mine, theirs } = postgres.two();
    return { one: mine, other: theirs };
  });

  test("a notice of another process's write names the tree, changed inboxes and records, and the first timer", async () => {
    const { mine, theirs } = postgres.two();
    const heard: ForeignWrites[] = [];
    const end = mine.onForeignWrite((writes) => heard.push(writes));
    await until(() => heard.length > 0);
    expect(heard).toEqual(["any"]);
    heard.length = 0;
    const root = await openAgent(theirs, { turnBudget: { deadline: NOW + 7000 } });
    const kid = await openChild(root, "kid");
    await kid.commit({ entries: [note("an unchanged inbox")] });
    await kid.commit({ entries: [note("a record")], owned: { ...ready, lastActivity: NOW + 1 } });
    await theirs.pause(agentKey(), "ann", NOW);
    // Heartbeats are not reported.
    await theirs.heartbeat(elsewhere.processId, NOW);
    const writes = (): readonly ForeignWrite[] => heard.flatMap((one) => (one === "any" ? [] : one.all));
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

  test("a live message of any length arrives whole", async () => {
    const { mine, theirs } = postgres.two();
    mine.live.onAsked("owner", () => undefined);
    const heard: string[] = [];
    theirs.live.follow(place("follower"), (message) => heard.push(message));
    await until(() => mine.live.isFollowed(place("owner")));
    const sent = ["日本語".repeat(20_000), "after", "x".repeat(8_000)];
    for (const message of sent) mine.live.send(place("owner"), message);
    await until(() => heard.length >= sent.length);
    expect(heard).toEqual(sent);
    await mine.close();
    await theirs.close();
  });

  test("writes during an interruption of listening are reported after it as writes of any kind", async () => {
    const { mine, theirs } = postgres.two();
    await openAgent(theirs);
    const heard: ForeignWrites[] = [];
    mine.onForeignWrite((writes) => heard.push(writes));
    await until(() => heard.length > 0);
    heard.length = 0;
    await postgres.server.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_notify%'",
    );
    await theirs.pause(agentKey(), "ann", NOW);
    await until(() => heard.includes("any"));
    expect(await mine.posted([agentKey()])).toEqual([agentKey()]);
    await mine.close();
    await theirs.close();
  });
});
