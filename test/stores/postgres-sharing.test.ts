import { describe, expect, test } from "vitest";
import type { ForeignWrites } from "../../src/stores/index.ts";
import { NOW, ROOT, TENANT } from "../contracts/names.ts";
import { agentKey, openAgent } from "../contracts/stores-fixtures.ts";
import { describeLiveChannel, until } from "../contracts/stores-live.contract.ts";
import { noticesContract } from "../contracts/stores-notices.contract.ts";
import { sharingContract } from "../contracts/stores-sharing.contract.ts";
import { postgresProgram } from "../support/postgres-server.ts";
import { ownSchema } from "../support/postgres-stores.ts";
import { postgresOfSuite } from "../support/postgres-suite.ts";

const place = (processId: string) => ({ tenant: TENANT, rootAgentId: ROOT, processId });

describe.skipIf(!postgresProgram)("Postgres, shared", () => {
  const postgres = postgresOfSuite();

  sharingContract("Postgres", () => postgres.two());
  describeLiveChannel("Postgres", async () => {
    const { mine, theirs } = postgres.two();
    return { one: mine, other: theirs };
  });

  noticesContract(() => postgres.two());

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
    const name = ownSchema();
    const { mine, theirs } = postgres.two({ url: `${postgres.server.url}?application_name=${name}` });
    await openAgent(theirs);
    const heard: ForeignWrites[] = [];
    mine.onForeignWrite((writes) => heard.push(writes));
    await until(() => heard.length > 0);
    heard.length = 0;
    await postgres.server.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 AND query LIKE 'SELECT pg_notify%'",
      [name],
    );
    await theirs.pause(agentKey(), "ann", NOW);
    await until(() => heard.includes("any"));
    expect(await mine.posted([agentKey()])).toEqual([agentKey()]);
    await mine.close();
    await theirs.close();
  });
});
