import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ledgerAt } from "../../chaos/ledger/client.ts";
import { type Attempt, EffectLedger } from "../../chaos/ledger/effect-ledger.ts";
import { readLines } from "../../chaos/line-log.ts";
import { startServer } from "../../chaos/processes.ts";

let folder: string;
let log: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "troupe-ledger-"));
  log = join(folder, "ledger.jsonl");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const charge = { key: "a#1:1:0", tool: "charge", effect: "keyed", pid: 1 } as const;

it("has one effect per key at a keyed receiver, and returns its receipt again", () => {
  const ledger = new EffectLedger(log);
  expect(ledger.attempt(charge, 1)).toMatchObject({ applied: true, receipt: "receipt-1" });
  expect(ledger.attempt({ ...charge, pid: 2 }, 2)).toMatchObject({ applied: false, receipt: "receipt-1", number: 2 });
  expect(ledger.of(charge.key)).toEqual({ key: charge.key, attempts: 2, effects: 1, receipt: "receipt-1" });
  ledger.close();
});

it("counts every attempt at the others as an effect", () => {
  const ledger = new EffectLedger(log);
  for (const effect of ["none", "once"] as const) {
    const request = { key: `a#1:1:${effect}`, tool: "send", effect, pid: 1 };
    expect([ledger.attempt(request, 1).applied, ledger.attempt(request, 2).applied]).toEqual([true, true]);
    expect(ledger.of(request.key).effects).toBe(2);
  }
  expect(ledger.counts()).toEqual({ attempts: 4, effects: 4, keys: 2 });
  ledger.close();
});

it("returns its earlier answers after a restart", () => {
  const before = new EffectLedger(log);
  before.attempt(charge, 1);
  before.close();
  const after = new EffectLedger(log);
  expect(after.attempt(charge, 2)).toMatchObject({ applied: false, number: 2 });
  after.close();
});

it("is a separate process that has an attempt on disk before it answers", async () => {
  const server = await startServer("ledger/server.ts", [log]);
  try {
    const ledger = ledgerAt(server.address);
    const [first, second] = await Promise.all([ledger.attempt(charge), ledger.attempt(charge)]);
    expect([first.applied, second.applied].filter(Boolean)).toHaveLength(1);
    expect(readLines<Attempt>(log)).toHaveLength(2);
    expect(await ledger.of(charge.key)).toMatchObject({ attempts: 2, effects: 1 });
    expect(await ledger.of("unknown")).toEqual({ key: "unknown", attempts: 0, effects: 0, receipt: null });
    expect(await ledger.counts()).toEqual({ attempts: 2, effects: 1, keys: 1 });
    await expect(ledger.attempt({ ...charge, key: "" })).rejects.toThrow(/400/);
  } finally {
    await server.stop();
  }
});
