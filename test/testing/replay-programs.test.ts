import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { createRedactor } from "../../src/base/index.ts";
import { Feed } from "../../src/inspector/index.ts";
import { memoryStores, type Stores } from "../../src/index.ts";
import { readRunFile, type StoredTree } from "../../src/stores/index.ts";
import { recordingOf } from "../../src/testing/recording.ts";
import { replay, replayRecording, type ReplayResult, rulesOf } from "../../src/testing/replay.ts";
import { sharedStoresOf, storesNames } from "../inspector/feed-fixtures.ts";
import { fixturesFolder } from "../support/fixture-files.ts";
import { teamDefinitions } from "../support/fixture-team.ts";
import { rows, randomCases } from "../support/full.ts";
import { playPrograms } from "../support/played-programs.ts";

const cases = randomCases(1_000, 60);
const CASES_OF_PART = 30;
const parts = Array.from({ length: Math.ceil(cases / CASES_OF_PART) }, (_, part) => part);
/** The timeout of a part on a busy machine, in milliseconds. */
const PART_MS = 120_000;

class Tally {
  readonly faults: string[] = [];
  requests = 0;
  hooks = 0;
  calls = 0;

  add(result: ReplayResult): void {
    this.requests += result.requests;
    this.hooks += result.hooks;
    this.calls += result.calls;
    if (!result.isEqual) this.faults.push(`${JSON.stringify(result.divergedAt)} ${result.part}\n${result.diff}`);
  }
}

describe("random programs, whose processes die, are replayed without a difference", () => {
  const tally = new Tally();

  it.each(parts)("part %i", { timeout: PART_MS }, async (part) => {
    const played = await playPrograms({ seed: 41_000 + part, count: CASES_OF_PART });
    for (const agentId of played.roots) {
      tally.add(await replay({ stores: played.stores, agentId }, { agents: played.agents }));
    }
    await played.close();
    expect(tally.faults).toEqual([]);
  });

  it("and contain requests, hooks and calls", () => {
    expect(tally.requests).toBeGreaterThan(2 * cases);
    expect(tally.hooks).toBeGreaterThan(cases / 2);
    expect(tally.calls).toBeGreaterThan(2 * cases);
  });
});

describe.each(storesNames)("the same programs from %s", (name) => {
  const newPlace = sharedStoresOf(name);

  it.each(rows(parts, (_part, index) => index === 0))("part %i", { timeout: PART_MS }, async (part) => {
    const played = await playPrograms({ seed: 41_000 + part, count: CASES_OF_PART });
    const stores = newPlace().open();
    const tally = new Tally();
    for (const agentId of played.roots) {
      const tree = await played.stores.exportTree("default", agentId);
      if (tree) await stores.importTree(tree, "test");
      tally.add(await replay({ stores, agentId }, { agents: played.agents }));
    }
    await played.close();
    expect(tally.faults).toEqual([]);
    expect(tally.requests).toBeGreaterThan(CASES_OF_PART);
  });
});

it("programs that were exported with redaction are replayed without a difference", { timeout: PART_MS }, async () => {
  const played = await playPrograms({ seed: 41_000, count: CASES_OF_PART });
  const feed = new Feed({ redactor: createRedactor({ secrets: ["receipt", "Does as it is"] }) });
  feed.add({ stores: played.stores, tenant: "default" });
  const tally = new Tally();
  let redacted = 0;
  for (const agentId of played.roots) {
    const { tree } = readRunFile(JSON.stringify(await feed.export(agentId)));
    const result = await replayRecording(recordingOf(tree), rulesOf({ agents: played.agents }, "replay()"));
    redacted += result.redacted;
    tally.add(result);
  }
  feed.close();
  await played.close();
  expect(tally.faults).toEqual([]);
  expect(redacted).toBeGreaterThan(CASES_OF_PART);
});

describe.each(readdirSync(fixturesFolder))("runs that version %s stored", (version) => {
  it("are replayed without a difference", async () => {
    const text = gunzipSync(readFileSync(join(fixturesFolder, version, "trees.json.gz"))).toString();
    const tally = new Tally();
    for (const tree of JSON.parse(text) as StoredTree[]) {
      const stores: Stores = memoryStores();
      await stores.importTree(tree, "test");
      tally.add(await replay({ stores, agentId: tree.rootAgentId }, { agents: teamDefinitions() }));
    }
    expect(tally.faults).toEqual([]);
    expect(tally.requests).toBeGreaterThan(30);
  });
});
