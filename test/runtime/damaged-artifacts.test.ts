import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { createRuntime, defineAgent, defineTool, type Runtime } from "../../src/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";
import { calling } from "../support/turn-probes.ts";

const save = defineTool({
  name: "save",
  description: "Saves the report.",
  parameters: z.object({}),
  execute: async (_args, run) => {
    await run.saveArtifact({ name: "report", contentType: "text/plain", content: "all is well" });
    return "saved";
  },
});

const open = (stores: Stores): Promise<Runtime> => {
  const model = scriptedModel(({ messages }) => (messages.at(-1)?.content === "save" ? calling("save") : "noted"));
  return createRuntime({ agents: [defineAgent({ name: "clerk", model, tools: [save] })], stores });
};

/** How to damage the stored artifact, in SQLite and in Redis. */
interface Damage {
  readonly what: string;
  readonly sql: string;
  readonly key: RegExp;
  readonly change: (value: string) => string;
  /** Whether the list of artifacts can still be read. */
  readonly isListed: boolean;
}

const damages: readonly Damage[] = [
  {
    what: "description",
    sql: "UPDATE artifacts SET description = '{}'",
    key: /:artifacts:a-1$/,
    change: (value) => value.replace(/\{.*\}/s, "{}"),
    isListed: false,
  },
  {
    what: "content",
    sql: "UPDATE artifacts SET content = 'broken'",
    key: /:contents:a-1$/,
    change: () => "broken",
    isListed: true,
  },
];

for (const store of ["sqlite", "redis"] as const) {
  describe.skipIf(store === "redis" && !redisProgram)(`a damaged artifact (${store})`, () => {
    const closing: (() => unknown)[] = [];
    afterEach(async () => {
      for (const close of closing.splice(0).toReversed()) await close();
    });

    async function openDamageable(): Promise<{ stores: () => Stores; damage: (by: Damage) => Promise<number> }> {
      if (store === "sqlite") {
        const folder = mkdtempSync(join(tmpdir(), "troupe-artifacts-"));
        closing.push(() => rmSync(folder, { recursive: true, force: true }));
        const file = join(folder, "a.db");
        const damage = ({ sql }: Damage): Promise<number> => {
          const database = new DatabaseSync(file);
          const { changes } = database.prepare(sql).run();
          database.close();
          return Promise.resolve(Number(changes));
        };
        return { stores: () => sqliteStores(file), damage };
      }
      const server = await RedisServer.start();
      closing.push(() => server.stop());
      const prefix = ownPrefix();
      const damage = async ({ key, change }: Damage): Promise<number> => {
        const raw = server.client();
        let changed = 0;
        for (const name of (await raw.keys(`${prefix}*`)).filter((found) => key.test(found))) {
          for (const [field, value] of Object.entries(await raw.hgetall(name))) {
            await raw.hset(name, field, change(value));
            changed += 1;
          }
        }
        raw.disconnect();
        return changed;
      };
      return { stores: () => storesOn(server, { prefix }), damage };
    }

    it.each(damages)("with an unreadable $what fails its readers and no turn", async (damaged) => {
      const { stores, damage } = await openDamageable();
      const first = await open(stores());
      const saving = await first.agent("clerk", { agentId: "a-1" });
      await saving.start();
      expect(await saving.executeTurn("save").result).toMatchObject({ status: "completed" });
      await first.shutdown();
      expect(await damage(damaged)).toBe(1);

      const second = await open(stores());
      closing.push(() => second.shutdown());
      const agent = await second.find("a-1");
      const corrupt = { code: "corrupt_record", message: expect.stringMatching(/artifact/) };
      await expect(agent.getArtifact("report")).rejects.toMatchObject(corrupt);
      const listed = await agent.getArtifacts().catch((error: unknown) => error);
      expect(listed).toMatchObject(damaged.isListed ? [{ name: "report" }] : corrupt);
      await agent.start();
      expect(await agent.executeTurn("hello").result).toMatchObject({ status: "completed", text: "noted" });
      expect(await damage(damaged)).toBe(1);
    });
  });
}
