import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { createRuntime, defineAgent, defineTool, type Runtime, type Turn } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { cutPower, type LogSizes, logSizes } from "../support/redis-log.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";
import { calling } from "../support/turn-probes.ts";

describe.skipIf(!redisProgram)("a Redis that lost acknowledged writes", () => {
  let folder: string;
  let server: RedisServer;
  let runtime: Runtime;
  let prefix: string;
  /** Idempotency keys of the tool's calls. */
  let charged: string[];
  let answers: number;
  const warned = vi.spyOn(process, "emitWarning");

  beforeEach(async () => {
    warned.mockReset().mockReturnValue();
    folder = mkdtempSync(join(tmpdir(), "troupe-rolled-back-"));
    server = await RedisServer.start({ folder });
    prefix = ownPrefix();
    charged = [];
    answers = 0;
    const charge = defineTool({
      name: "charge",
      description: "Charges.",
      parameters: z.object({}),
      effect: "keyed",
      execute: (_args, { idempotencyKey }) => {
        charged.push(idempotencyKey);
        return "charged";
      },
    });
    const model = scriptedModel(({ messages }) => {
      answers += 1;
      const results = messages.filter(({ role }) => role === "tool").length;
      return results < 2 ? calling("charge") : "done";
    });
    const pay = defineTool({
      name: "pay",
      description: "Pays.",
      parameters: z.object({}),
      needsApproval: true,
      execute: () => "paid",
    });
    const asking = scriptedModel(({ messages }) => (messages.at(-1)?.role === "tool" ? "done" : calling("pay")));
    runtime = await createRuntime({
      agents: [
        defineAgent({ name: "clerk", model, tools: [charge] }),
        defineAgent({ name: "asker", model: asking, tools: [pay] }),
      ],
      stores: storesOn(server, { prefix }),
      leaseMs: 2_000,
    });
  });
  afterEach(async () => {
    await runtime.shutdown();
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const loseSince = (then: LogSizes): Promise<void> => cutPower(server, folder, then);

  it("rejects a turn that was lost, and accepts the same turn again", async () => {
    const agent = await runtime.agent("asker", { agentId: "asker-1" });
    await agent.start();
    const then = logSizes(folder);
    const turn = agent.executeTurn("pay");
    const ends = [turn.result, lastOf(turn)];
    const rest = await turn.settled;
    // A later caller reads from the journal.
    const late = agent.openTurn();
    if (late) ends.push(late.result, lastOf(late));
    expect(rest).toMatchObject({ status: "waiting", reason: "request" });
    const lost = ends.map((end) => end.catch((error: unknown) => error));
    expect(lost).toHaveLength(4);
    await loseSince(then);
    for (const error of lost) expect(await error).toMatchObject({ code: "store_rolled_back", retryable: true });
    expect(late && (await lastOf(late).catch((error: unknown) => error))).toMatchObject({ code: "store_rolled_back" });
    expect(await runtime.requests()).toEqual([]);
    expect((await runtime.metrics()).rolledBack).toBe(1);
    expect(warned).toHaveBeenCalledWith(
      expect.stringMatching(/lost acknowledged writes .* asker-1 \(/),
      expect.anything(),
    );
    const again = agent.executeTurn("pay");
    const [request] = await again.settled.then((one) => ("requests" in one ? one.requests : []));
    await runtime.decide(request?.requestId ?? "", { verdict: "approved", by: "ann" });
    expect(await again.result).toMatchObject({ status: "completed", text: "done" });
  });

  it("continues a partly lost turn under the same keys and without a fork", async () => {
    const agent = await runtime.agent("clerk", { agentId: "clerk-1" });
    await agent.start();
    const sizes: LogSizes[] = [];
    const turn = agent.executeTurn("charge twice");
    for await (const event of turn) if (event.type === "tool.started") sizes.push(logSizes(folder));
    expect(await turn.result).toMatchObject({ status: "completed" });
    expect([charged.length, answers]).toEqual([2, 3]);
    // The turn's second call has started. All later rows are lost, and no process works on the turn.
    await loseSince(sizes[1] ?? new Map());
    await vi.waitFor(
      async () => expect((await runtime.stores.readAgent(agentKey("clerk-1")))?.openTurnId).toBeNull(),
      30_000,
    );
    expect(new Set(charged).size).toBe(2);
    const entries = (await runtime.stores.readJournal(agentKey("clerk-1"), 1)).flatMap((row) => row.entries);
    expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index + 1));
    expect(entries.filter(({ type }) => type === "turn.ended")).toHaveLength(1);
    expect(entries.filter(({ type }) => type === "tool.settled")).toHaveLength(2);
  });
});

/** Returns the last event of a turn. */
async function lastOf(turn: Turn): Promise<unknown> {
  let last: unknown;
  for await (const event of turn) last = event;
  return last;
}

function agentKey(agentId: string) {
  return { tenant: "default", agentId };
}
