import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createRuntime, defineAgent, type Runtime, subagent, type Turn } from "../../src/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { expectOtherWorks, openTwoClerks, payingClerk } from "../support/two-clerks.ts";

const clerk = payingClerk();
const lead = () => {
  const asking = { toolCalls: [{ name: "clerk", arguments: { input: "pay" } }] };
  const model = scriptedModel(({ messages }) => (messages.at(-1)?.role === "tool" ? "over" : asking));
  return defineAgent({ name: "lead", model, tools: [subagent(clerk, { description: "Pays." })] });
};

/** A damaged row of the agent, with the text that its error names. */
type Damage = readonly [what: string, sql: string, named: RegExp];
const OF = "WHERE agent = (SELECT id FROM agents WHERE agent_id = 'a-1')";

/** Rows that the approval of its request, or the rest of the turn, reads. */
const readByTurn: readonly Damage[] = [
  [
    "the account of its turn",
    "UPDATE accounts SET account = '{}' WHERE account_id = 'turn:a-1#1'",
    /account turn:a-1#1/,
  ],
  ["the account of its life", "UPDATE accounts SET account = '{}' WHERE account_id = 'agent:a-1'", /account agent:a-1/],
  [
    "an account that is not JSON",
    "UPDATE accounts SET account = 'broken' WHERE account_id = 'agent:a-1'",
    /account agent:a-1/,
  ],
  ["its record", "UPDATE agents SET record = '{}' WHERE agent_id = 'a-1'", /agent a-1/],
  [
    "its inbox",
    `INSERT INTO inbox (agent, item_key, item) SELECT id, 'x', '{}' FROM agents WHERE agent_id = 'a-1'`,
    /inbox of agent a-1/,
  ],
  ["its request", `UPDATE requests SET request = '{}' ${OF}`, /request a-1#1/],
];
/** Damage that only a process that starts the agent notices. */
const readAtStart: readonly Damage[] = [
  ["its journal", `UPDATE journal SET entries = '{}' ${OF}`, /row \d+ of the journal/],
  ["its messages", `UPDATE messages SET message = '{}' ${OF}`, /message of agent a-1/],
];

describe("a damaged row of one of two agents, in a file", () => {
  let folder: string;
  let file: string;
  let runtime: Runtime;
  let turn: Turn;
  let requestId: string;
  let damaged: number;
  const warned = vi.spyOn(process, "emitWarning");

  beforeEach(async () => {
    warned.mockReset().mockReturnValue();
    folder = mkdtempSync(join(tmpdir(), "troupe-damaged-"));
    file = join(folder, "a.db");
    runtime = await createRuntime({ agents: [lead(), clerk], stores: sqliteStores(file) });
    ({ turn, requestId } = await openTwoClerks(runtime));
    damaged = 0;
  });
  afterEach(async () => {
    await runtime.shutdown({ timeoutMs: 1_000 });
    rmSync(folder, { recursive: true, force: true });
  });

  /** Columns that still hold the damaged value. */
  const damagedColumns = (): number => {
    const database = new DatabaseSync(file, { readOnly: true });
    const tables = ["agents", "accounts", "heads", "journal", "messages", "requests", "inbox", "timers", "processes"];
    const values = tables.flatMap((table) => database.prepare(`SELECT * FROM ${table}`).all().flatMap(Object.values));
    database.close();
    return values.filter((value) => value === "{}" || value === "broken").length;
  };
  const damage = (sql: string): void => {
    const database = new DatabaseSync(file);
    expect(database.prepare(sql).run().changes).toBeGreaterThan(0);
    database.close();
    damaged = damagedColumns();
    expect(damaged).toBeGreaterThan(0);
  };
  const otherWorks = async (): Promise<void> => {
    await expectOtherWorks(runtime);
    expect(damagedColumns()).toBe(damaged);
  };

  it.each(readByTurn)("%s: the waiting caller gets the error, and the other agent works", async (_what, sql, named) => {
    const told = turn.result.catch((error: unknown) => error);
    damage(sql);
    const refused = runtime.decide(requestId, { verdict: "approved", by: "ann" }).then(
      () => told,
      (error: unknown) => error,
    );
    const error = await refused;
    expect(error).toMatchObject({ code: "corrupt_record", message: expect.stringMatching(named) });
    await otherWorks();
  });

  it.each(readAtStart)("%s: start() rejects with the error, and the other agent works", async (_what, sql, named) => {
    await runtime.shutdown();
    damage(sql);
    runtime = await createRuntime({ agents: [clerk], stores: sqliteStores(file) });
    const agent = await runtime.find("a-1");
    await expect(agent.start()).rejects.toMatchObject({
      code: "corrupt_record",
      message: expect.stringMatching(named),
    });
    await otherWorks();
  });

  it("the account of a subagent: the caller that waits for its parent gets the error", async () => {
    const lead = await runtime.agent("lead", { agentId: "lead-1" });
    await lead.start();
    const above = lead.executeTurn("have it paid");
    const told = above.result.catch((error: unknown) => error);
    const rest = await above.settled;
    const [request] = "requests" in rest ? rest.requests : [];
    damage(`UPDATE accounts SET account = '{}' WHERE account_id = 'turn:${request?.turnId}'`);
    await runtime.decide(request?.requestId ?? "", { verdict: "approved", by: "ann" }).catch(() => undefined);
    expect(await told).toMatchObject({ code: "corrupt_record", message: expect.stringMatching(/account turn:/) });
    const events = (async () => {
      for await (const event of above) expect(event).toBeDefined();
    })();
    await expect(events).rejects.toMatchObject({ code: "corrupt_record" });
    await otherWorks();
  });

  it("a timer: timers of other agents still fire", async () => {
    damage(
      `INSERT INTO timers (agent, timer_id, due_at, timer) SELECT id, 'x', 1, '{}' FROM agents WHERE agent_id = 'a-1'`,
    );
    const other = await runtime.find("b-1");
    const result = await other.executeTurn("pay", { budget: { deadline: Date.now() + 300 } }).result;
    expect(result).toMatchObject({ status: "stopped", stop: { limit: "deadlineAt" } });
    expect(warned).toHaveBeenCalledWith(expect.stringMatching(/timer .* of agent a-1/), expect.anything());
  });
});
