import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { auditStore } from "../../chaos/faults/f31-audit.ts";
import { batchAt, identityOf, ROOT, ROOT_ACCOUNT, TENANT } from "../../chaos/faults/f31-team.ts";
import { seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { here } from "../contracts/stores-fixtures.ts";
import { amount } from "../support/full.ts";
import { temporaryFile } from "./temporary-file.ts";

const AGENT = "team~one";
const BATCHES = 12;

/** Writes batches and meanwhile copies the file and its write-ahead log. */
async function writtenFile(path: string, copy: string): Promise<void> {
  const stores = sqliteStores(path);
  const account = { id: ROOT_ACCOUNT, agentId: ROOT, turnId: null, parentId: null, limits: { maxTokens: 1_000_000 } };
  await stores.createAgent(identityOf(ROOT), account);
  await stores.createAgent(identityOf(AGENT), {
    ...account,
    id: `agent:${AGENT}`,
    agentId: AGENT,
    parentId: ROOT_ACCOUNT,
  });
  await stores.registerProcess(here, 1);
  await stores.acquire({ tenant: TENANT, agentId: AGENT }, here.processId, 60_000, 1);
  for (let count = 0; count < BATCHES; count += 1) await stores.commit([batchAt(AGENT, 1, 2 * count).batch], 1);
  for (const end of ["", "-wal"]) copyFileSync(`${path}${end}`, `${copy}${end}`);
  await stores.close();
}

test("a power cut loses the last commits of a file and leaves it consistent, wherever it cuts the write-ahead log", async () => {
  const copy = temporaryFile("copy.db");
  await writtenFile(temporaryFile(), copy);
  const log = readFileSync(`${copy}-wal`);
  const random = seededRandom(5);
  const cuts = Array.from({ length: amount(200, 25) }, () => random.between(0, log.length)).sort((a, b) => a - b);
  let kept = 0;
  for (const cut of [...cuts, log.length]) {
    const path = temporaryFile("cut.db");
    copyFileSync(copy, path);
    writeFileSync(`${path}-wal`, log.subarray(0, cut));
    const stores = sqliteStores(path);
    const isThere = (await stores.readAgent({ tenant: TENANT, agentId: AGENT })) !== undefined;
    const rows = isThere ? await stores.readJournal({ tenant: TENANT, agentId: AGENT }, 1) : [];
    await stores.close();
    expect(isThere ? await auditStore(path, [{ agentId: AGENT, lines: [] }]) : []).toEqual([]);
    expect(rows.length).toBeGreaterThanOrEqual(kept);
    kept = rows.length;
  }
  expect(kept).toBe(BATCHES);
}, 60_000);
