import { copyFileSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { createRuntime, defineAgent, defineTool, type Runtime, TroupeError } from "../../src/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { calling } from "../support/turn-probes.ts";

const CASES = 60;

/** Returns a seeded generator of whole numbers below a bound. */
function numbersOf(seed: number): (below: number) => number {
  let state = (seed * 2_654_435_761) >>> 0;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 3_266_489_917) >>> 0;
    return state % below;
  };
}

const clerk = () => {
  const pay = defineTool({
    name: "pay",
    description: "Pays.",
    parameters: z.object({}),
    needsApproval: true,
    execute: () => "paid",
  });
  const model = scriptedModel(({ messages }) => (messages.at(-1)?.role === "tool" ? "done" : calling("pay")));
  return defineAgent({ name: "clerk", model, tools: [pay] });
};

/** How the agent's open turn ends in a new process, or the code of the error that prevents it. */
async function told(file: string, onOpen: (runtime: Runtime) => void): Promise<string> {
  try {
    const runtime = await createRuntime({ agents: [clerk()], stores: sqliteStores(file) });
    onOpen(runtime);
    const agent = await runtime.find("a-1");
    await agent.start();
    const turn = agent.openTurn() ?? agent.executeTurn("pay");
    for (;;) {
      const rest = await turn.settled;
      if (rest.status !== "waiting") return rest.status;
      const open = await agent.requests();
      if (open.length === 0) return "waits without a request";
      for (const { requestId } of open) await runtime.decide(requestId, { verdict: "approved", by: "ann" });
      return (await turn.result).status;
    }
  } catch (error) {
    if (error instanceof TroupeError) return `refused: ${error.code}`;
    throw error;
  }
}

/**
 * Whether an index lacks a row although all its pages are in order. Only a check of the whole file finds that, which is too slow for a
 * start, and lists that read the index lack the row.
 */
function hidesRow(file: string): boolean {
  const copy = `${file}-checked`;
  copyFileSync(file, copy);
  try {
    const database = new DatabaseSync(copy);
    try {
      const found = database.prepare("PRAGMA integrity_check").all();
      return found.some((row) => String(row["integrity_check"]).includes("missing from index"));
    } finally {
      database.close();
    }
  } catch {
    return false;
  }
}

describe("files with flipped or cut bytes", () => {
  let folder: string;
  let whole: string;
  let runtime: Runtime | undefined;
  const warned = vi.spyOn(process, "emitWarning");
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "troupe-flipped-"));
    whole = join(folder, "whole.db");
    const first = await createRuntime({ agents: [clerk()], stores: sqliteStores(whole) });
    const agent = await first.agent("clerk", { agentId: "a-1", budget: { maxSteps: 50 } });
    await agent.start();
    await agent.executeTurn("pay").settled;
    await first.shutdown();
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  beforeEach(() => {
    runtime = undefined;
    warned.mockReset().mockReturnValue();
  });
  afterEach(() => runtime?.shutdown({ timeoutMs: 500 }).catch(() => undefined));

  it.each(Array.from({ length: CASES }, (_, seed) => seed))("no turn waits forever (seed %i)", async (seed) => {
    const file = join(folder, `${seed}.db`);
    const below = numbersOf(seed + 1);
    copyFileSync(whole, file);
    const bytes = readFileSync(file);
    if (seed % 4 === 3) truncateSync(file, 1 + below(bytes.length - 1));
    else {
      for (let flips = 1 + below(12); flips > 0; flips -= 1) {
        const at = 100 + below(bytes.length - 100);
        bytes[at] = (bytes[at] ?? 0) ^ (1 << below(8));
      }
      writeFileSync(file, bytes);
    }
    if (hidesRow(file)) return;
    const outcome = await told(file, (opened) => {
      runtime = opened;
    });
    expect(outcome).toMatch(/^(completed|stopped|failed|refused: \w+)$/);
  });
});
