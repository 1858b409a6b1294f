import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { auditOfTree, contentRemoved } from "../../src/inspector/feed/audit-run.ts";
import { type AuditReport, checkAudit } from "../../src/inspector/run-model/audit-check.ts";
import type { AuditFile } from "../../src/inspector/run-model/audit-file.ts";
import { nodeSha256, type StoredTree } from "../../src/stores/index.ts";
import { fixturesFolder } from "../support/fixture-files.ts";
import { rows, randomCases } from "../support/full.ts";
import { playPrograms } from "../support/played-programs.ts";
import { sharedStoresOf, storesNames } from "./feed-fixtures.ts";

const cases = randomCases(1_000, 60);
const CASES_OF_PART = 30;
const parts = Array.from({ length: Math.ceil(cases / CASES_OF_PART) }, (_, part) => part);
/** The timeout of a part on a busy machine, in milliseconds. */
const PART_MS = 120_000;

function reportOf(file: AuditFile, head?: string): AuditReport {
  return checkAudit(file, { sha256: nodeSha256, head });
}

function throughJson(file: AuditFile): AuditFile {
  return JSON.parse(JSON.stringify(file)) as AuditFile;
}

describe("random programs, whose processes die", () => {
  it.each(parts)("are consistent, with and without their contents: part %i", { timeout: PART_MS }, async (part) => {
    const played = await playPrograms({ seed: 41_500 + part, count: CASES_OF_PART });
    const verdicts = new Set<string>();
    let effects = 0;
    for (const rootAgentId of played.roots) {
      const tree = await played.stores.exportTree("default", rootAgentId);
      if (!tree) continue;
      const file = await auditOfTree(tree);
      const report = reportOf(file);
      expect(report.problems).toEqual([]);
      verdicts.add(report.verdict);
      effects += report.effects.length;
      const head = file.head ?? undefined;
      const bare = throughJson(contentRemoved(file));
      expect(reportOf(throughJson(file), head)).toMatchObject({ verdict: "verified", covered: file.links.length });
      expect(reportOf(bare, head)).toEqual({ ...reportOf(file, head), removed: expect.anything() });
    }
    await played.close();
    expect([...verdicts]).toEqual(["consistent"]);
    expect(effects).toBeGreaterThan(CASES_OF_PART);
  });
});

describe.each(storesNames)("the same programs in %s", (name) => {
  const newPlace = sharedStoresOf(name);

  it.each(rows(parts, (_part, index) => index === 0))(
    "have the same heads: part %i",
    { timeout: PART_MS },
    async (part) => {
      const played = await playPrograms({ seed: 41_500 + part, count: CASES_OF_PART });
      const stores = newPlace().open();
      for (const rootAgentId of played.roots) {
        const tree = await played.stores.exportTree("default", rootAgentId);
        if (!tree) continue;
        await stores.importTree(tree, "test");
        const copy = await stores.exportTree("default", rootAgentId);
        const { head } = await auditOfTree(tree);
        expect(head).toMatch(/^[0-9a-f]{64}$/);
        expect(copy && reportOf(await auditOfTree(copy), head ?? undefined)).toMatchObject({
          verdict: "verified",
          head,
        });
      }
      await played.close();
    },
  );
});

describe.each(readdirSync(fixturesFolder))("runs that version %s stored", (version) => {
  it("are consistent", async () => {
    const text = gunzipSync(readFileSync(join(fixturesFolder, version, "trees.json.gz"))).toString();
    const trees = JSON.parse(text) as StoredTree[];
    expect(trees.length).toBeGreaterThan(3);
    for (const tree of trees) {
      const report = reportOf(await auditOfTree(tree));
      expect(report.problems).toEqual([]);
      expect(report.verdict).toBe(
        tree.rows.some(({ entries }) => entries.some(({ type }) => type === "conversation.cleared"))
          ? "partial"
          : "consistent",
      );
    }
  });
});
