import { copyFileSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { backup, DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { createRuntime, defineAgent, defineTool } from "../../src/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { startProgram } from "../support/waiting-process.ts";
import { temporaryFile } from "./temporary-file.ts";

type Copy = (path: string, copy: string) => Promise<void>;

/** Plain SQLite, as in the `sqlite3` shell and backup programs. */
async function onSqlite<T>(path: string, work: (database: DatabaseSync) => T | Promise<T>): Promise<T> {
  const database = new DatabaseSync(path);
  try {
    return await work(database);
  } finally {
    database.close();
  }
}

const ways: readonly (readonly [name: string, copy: Copy])[] = [
  ["the online backup API", (path, copy) => onSqlite(path, async (database) => void (await backup(database, copy)))],
  ["VACUUM INTO", (path, copy) => onSqlite(path, (database) => database.exec(`VACUUM INTO '${copy}'`))],
  [
    "a copy after a checkpoint",
    async (path, copy) => {
      const { busy } = await onSqlite(path, (database) => ({
        ...database.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get(),
      }));
      expect(busy).toBe(0);
      copyFileSync(path, copy);
    },
  ],
];

/** A process that has run five turns and is at rest. */
async function fiveTurns(path: string) {
  const writer = startProgram(fileURLToPath(new URL("five-turns.ts", import.meta.url)), [path]);
  onTestFinished(() => writer.kill());
  expect(await writer.firstLine).toBe("five turns");
  return writer;
}

/** What troupe reads from the file: the states of the turns, and the number of messages. */
async function readBack(path: string): Promise<{ readonly turns: string[]; readonly messages: number }> {
  const model = scriptedModel(({ messages }) => `I see ${messages.length}.`);
  const runtime = await createRuntime({ agents: [defineAgent({ name: "clerk", model })], stores: sqliteStores(path) });
  const agent = await runtime.find("clerk-1");
  const turns = (await runtime.turns({ agentId: "clerk-1" })).map(({ status }) => status);
  const { length: messages } = await agent.getMessages();
  await runtime.shutdown();
  return { turns, messages };
}

test.each(ways)(
  "%s of a file in use, and of one whose writer was killed, contains every acknowledged turn",
  async (_name, copy) => {
    const path = temporaryFile();
    const writer = await fiveTurns(path);
    const [ofLiving, ofDead] = [temporaryFile("living.db"), temporaryFile("dead.db")];
    await copy(path, ofLiving);
    writer.kill();
    await writer.ended;
    await copy(path, ofDead);
    const all = { turns: Array.from({ length: 5 }, () => "completed"), messages: 10 };
    expect(await readBack(ofLiving)).toEqual(all);
    expect(await readBack(ofDead)).toEqual(all);
  },
);

test("other programs read the current state, while the writer runs and after it was killed", async () => {
  const path = temporaryFile();
  const writer = await fiveTurns(path);
  const seen = () =>
    onSqlite(path, (database) => ({
      turns: database.prepare("SELECT count(*) AS n FROM turns WHERE stop_reason = 'completed'").get()?.["n"],
      ends: database.prepare("SELECT count(*) AS n FROM entries WHERE type = 'turn.ended'").get()?.["n"],
      last: database.prepare("SELECT content FROM conversation ORDER BY cursor DESC LIMIT 1").get()?.["content"],
    }));
  const five = { turns: 5, ends: 5, last: "I see 9." };
  expect(await seen()).toEqual(five);
  writer.kill();
  await writer.ended;
  expect(await seen()).toEqual(five);
});

test("the queries of docs/stores.md return rows", async () => {
  const path = temporaryFile();
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: z.object({}),
    execute: () => {
      throw new Error("it is dark");
    },
  });
  const model = scriptedModel([{ toolCalls: [{ name: "look" }] }, "I see nothing."]);
  const clerk = defineAgent({ name: "clerk", model, tools: [look] });
  const runtime = await createRuntime({ agents: [clerk], stores: sqliteStores(path) });
  const agent = await runtime.agent("clerk", { agentId: "clerk-1" });
  await agent.start();
  await agent.executeTurn("Look.").result;
  const guide = readFileSync(new URL("../../docs/stores.md", import.meta.url), "utf8");
  const queries =
    /```sql\n(.*?)```/s
      .exec(guide)?.[1]
      ?.split(";")
      .filter((text) => text.trim() !== "") ?? [];
  const [doing, spent, failed] = await onSqlite(path, (database) => queries.map((sql) => database.prepare(sql).all()));
  expect(doing).toMatchObject([{ agent_id: "clerk-1", name: "clerk", status: "ready", open_turn_id: null }]);
  expect(spent).toMatchObject([{ turn_id: "clerk-1#1", tokens: expect.any(Number), dollars: 0 }]);
  expect(failed).toMatchObject([{ agent_id: "clerk-1", tool: "look", error: expect.stringContaining("it is dark") }]);
  await runtime.shutdown();
});
