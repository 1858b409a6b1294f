import { type Arbitrary, array, assert, asyncProperty, integer, record } from "fast-check";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it, test } from "vitest";
import { createRuntime } from "../../src/index.ts";
import { inFull, randomCases } from "../support/full.ts";
import { elapse } from "../support/journal-probes.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { type Cut, faultsOf, stepsShown, streamingTeam, talk, watchedOverCuts } from "../support/streaming-team.ts";

const anyCuts: Arbitrary<Cut[]> = array(
  record({ after: integer({ min: 1, max: 25 }), pause: integer({ min: 0, max: 40 }) }),
  { minLength: 1, maxLength: 12 },
);

describeRuntimes(
  "a client whose connection is cut at random",
  (stage) => {
    it("F28: finally has every durable event once and the journal's text, in the same process and in another", async () => {
      const team = streamingTeam();
      let shown = 0;
      const cases = stage().variant === "memory" ? randomCases(12, 4) : randomCases(3, 1);
      let turns = 0;
      const owner = await stage().open({ agents: [team] });
      const elsewhere = await stage().open({ agents: [team] });
      const agent = await owner.agent("lead", { agentId: "f" });
      await agent.start();
      await assert(
        asyncProperty(anyCuts, integer({ min: 1, max: 4 }), async (cuts, more) => {
          turns += more;
          const clients = [owner, elsewhere].map((runtime) => watchedOverCuts(runtime, `f#${turns}`, cuts));
          await elapse(stage().clock, Promise.all([talk(agent, more), ...clients]), 20);
          for (const client of await Promise.all(clients)) {
            expect(await faultsOf(client, owner)).toEqual([]);
            shown += stepsShown(client);
          }
        }),
        { numRuns: cases },
      );
      expect(shown).toBeGreaterThan(0);
    });
  },
  ["memory", "sqlite", "memory, restored", "redis"],
);

// A turn shows its text only between two cuts, so a few turns may show none.
inFull(() => {
  test.skipIf(!redisProgram)(
    "F28: a client in another process misses nothing over cut connections and restarts of Redis",
    async () => {
      const server = await RedisServer.start();
      const prefix = ownPrefix();
      const team = streamingTeam();
      const owner = await createRuntime({ agents: [team], stores: storesOn(server, { prefix }) });
      const elsewhere = await createRuntime({ agents: [team], stores: storesOn(server, { prefix }) });
      const agent = await owner.agent("lead", { agentId: "f" });
      await agent.start();
      const client = server.client();
      let isOver = false;
      const turns = 100;
      const cuts = Array.from({ length: turns * 2 }, (_, index) => ({
        after: 1 + ((index * 7) % 20),
        pause: (index * 5) % 23,
      }));
      const talking = talk(agent, turns).finally(() => {
        isOver = true;
      });
      const watching = watchedOverCuts(elsewhere, `f#${turns}`, cuts);
      const staying = watchedOverCuts(elsewhere, `f#${turns}`, []);
      for (let round = 1; !isOver; round += 1) {
        await delay(15);
        if (round % 20 === 0) {
          await server.kill();
          await server.launch();
        } else await client.call("CLIENT", "KILL", "TYPE", "pubsub").catch(() => undefined);
      }
      await talking;
      for (const one of await Promise.all([watching, staying])) {
        expect(await faultsOf(one, owner)).toEqual([]);
        expect(stepsShown(one)).toBeGreaterThan(0);
      }
      client.disconnect();
      await owner.shutdown();
      await elsewhere.shutdown();
      await server.stop();
    },
  );
});
