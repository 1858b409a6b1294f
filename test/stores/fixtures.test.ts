import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { Stores, StoredTree } from "../../src/stores/index.ts";
import { memoryStores } from "../../src/stores/memory.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { here } from "../contracts/stores-fixtures.ts";
import { fixturesFolder } from "../support/fixture-files.ts";
import {
  continueTeam,
  endedTurns,
  FIXTURE_START,
  fixtureEntryTypes,
  openInputs,
  playTeam,
} from "../support/fixture-team.ts";
import { elapse, entriesOf, entriesOfType } from "../support/journal-probes.ts";
import { far } from "../support/under-way.ts";
import { temporaryFile } from "./temporary-file.ts";

type Opening = (folder: string) => Stores | Promise<Stores>;

const unpacked = (folder: string, name: string): Buffer => gunzipSync(readFileSync(join(folder, `${name}.gz`)));

const openings: readonly (readonly [what: string, open: Opening])[] = [
  [
    "SQLite",
    (folder) => {
      const path = temporaryFile();
      writeFileSync(path, unpacked(folder, "team.db"));
      return sqliteStores(path);
    },
  ],
  [
    "exported trees",
    async (folder) => {
      const stores = memoryStores();
      await stores.registerProcess(here, FIXTURE_START);
      const trees = JSON.parse(unpacked(folder, "trees.json").toString()) as StoredTree[];
      for (const tree of trees) await stores.importTree(tree, here.processId);
      return stores;
    },
  ],
];

test("a fixture is complete, however long the stores take while it is made", async () => {
  const stores = far(memoryStores(), 250);
  const { runtime, clock } = await playTeam(stores);
  expect(await entriesOfType(stores, "late", "timer.due")).toHaveLength(1);
  // The work in flight never ends.
  vi.spyOn(process, "emitWarning").mockReturnValue();
  await elapse(clock, runtime.shutdown());
});

describe.each(readdirSync(fixturesFolder))("stored data of version %s (F33)", (version) => {
  test.each(openings)("in %s is read, and its open turns go on", async (_what, open) => {
    const stores = await open(join(fixturesFolder, version));
    const agents = await stores.listAgents({ tenant: "default" });
    const entries = await Promise.all(agents.map(({ agentId }) => entriesOf(stores, agentId)));
    const types = new Set(entries.flat().map(({ type }) => type));
    const missing = fixtureEntryTypes.filter((type) => !types.has(type));
    expect(missing, "entry types missing from all fixtures; run npm run build:fixtures").toEqual([]);

    const { runtime, results } = await continueTeam(stores);
    onTestFinished(() => runtime.shutdown());
    expect(results.map(({ turnId, status }) => [turnId, status])).toEqual(
      Object.keys(openInputs).map((agentId) => [`${agentId}#1`, "completed"]),
    );
    for (const [agentId, turns] of Object.entries(endedTurns)) {
      const ended = await runtime.turns({ agentId });
      expect(ended.map(({ number, status }) => [number, status !== "open"])).toEqual(
        Array.from({ length: turns }, (_, index) => [turns - index, true]),
      );
    }
    expect((await (await runtime.find("clerk")).getMessages()).length).toBeGreaterThan(3);
  });
});
