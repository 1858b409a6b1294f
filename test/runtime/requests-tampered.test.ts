import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { type AgentDefinition, CorruptRecordError, defineAgent, RequestConflictError } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { openTill, payment, requestOf, startAgent, type Till } from "../support/deciding.ts";
import { entriesOfType, orderFault, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling } from "../support/turn-probes.ts";

/** Replaces every occurrence of a text in a JSON column. */
interface Change {
  readonly table: "journal" | "requests" | "inbox";
  readonly from: string;
  readonly to: string;
}

const columns = { journal: "entries", requests: "request", inbox: "item" } as const;
const oldArguments = '{"to":"Ada","amount":5}';
const newArguments = '{"to":"Ada","amount":5000}';

const clerkWith = (till: Till): AgentDefinition =>
  defineAgent({
    name: "clerk",
    model: scriptedModel(({ messages }) => (messages.at(-1)?.role === "user" ? calling(payment(5)) : "the end")),
    tools: [till.tool],
  });

describeRuntimes(
  "S15: stored rows that were changed outside the runtime",
  (stage) => {
    const change = (changes: readonly Change[]): void => {
      const database = new DatabaseSync(join(stage().folder ?? "", "troupe.db"));
      for (const { table, from, to } of changes) {
        const column = columns[table];
        const update = database.prepare(
          `UPDATE ${table} SET ${column} = replace(${column}, ?, ?) WHERE ${column} LIKE ?`,
        );
        expect(update.run(from, to, `%${from}%`).changes).toBeGreaterThan(0);
      }
      database.close();
    };

    /** An agent whose process died while it waits for an approval, and the hash of other arguments for a forgery. */
    const waiting = async () => {
      const till = openTill();
      const doomed = await stage().openProcess({ agents: [clerkWith(till)] });
      const before = await startAgent(doomed.runtime, "clerk", "c");
      const request = await requestOf(before.executeTurn("pay"));
      const twin = await startAgent(doomed.runtime, "clerk", "twin");
      const forging = twin.executeTurn("pay");
      const { requestId } = await requestOf(forging);
      const forgedArguments = { to: "Ada", amount: 5_000 };
      await doomed.runtime.decide(requestId, { verdict: "edited", arguments: forgedArguments });
      await forging.result;
      const gates = await entriesOfType(stage().look(), "twin", "call.gated");
      const forgedHash = gates.at(-1)?.argumentsHash ?? "";
      till.paid.length = 0;
      doomed.kill();
      stage().expireLeases();
      return { request, till, forgedHash };
    };

    const approveThenChange = async (changes: (hashes: { old: string; forged: string }) => readonly Change[]) => {
      const { request, forgedHash } = await waiting();
      const page = await stage().open({ agents: [] });
      await page.decide(request.requestId, { verdict: "approved", by: "grace", argumentsHash: request.argumentsHash });
      change(changes({ old: request.argumentsHash, forged: forgedHash }));
      const till = openTill();
      const runtime = await stage().open({ agents: [clerkWith(till)] });
      const agent = await runtime.find("c");
      await agent.start();
      return { runtime, agent, till, request };
    };

    it("arguments other than the approved ones are not run, and the model gets an error", async () => {
      const { agent, till } = await approveThenChange(() => [
        { table: "journal", from: oldArguments, to: newArguments },
      ]);
      expect((await agent.turn("c#1").result).text).toBe("the end");
      expect(till.paid).toEqual([]);
      expect(await toolTextsOf(agent)).toEqual([
        "The call was not run: its arguments are not those that were approved.",
      ]);
      const [settled] = await entriesOfType(stage().look(), "c", "tool.settled");
      expect(settled).toMatchObject({ outcome: "denied", error: { code: "arguments_changed" } });
      expect(await entriesOfType(stage().look(), "c", "tool.started")).toEqual([]);
      expect(orderFault(await agent.getMessages())).toBeUndefined();
    });

    it("not even with a matching hash: a person is asked again", async () => {
      const { runtime, agent, till, request } = await approveThenChange(({ old, forged }) => [
        {
          table: "journal",
          from: `"arguments":${oldArguments},"argumentsHash":"${old}"`,
          to: `"arguments":${newArguments},"argumentsHash":"${forged}"`,
        },
      ]);
      const asked = await requestOf(agent.turn("c#1"));
      expect(asked).toMatchObject({ requestId: "c#1:1:0:2", arguments: { to: "Ada", amount: 5_000 } });
      expect(asked.argumentsHash).not.toBe(request.argumentsHash);
      const { argumentsHash } = request;
      await expect(runtime.decide(asked.requestId, { verdict: "approved", argumentsHash })).rejects.toThrow(
        RequestConflictError,
      );
      expect(till.paid).toEqual([]);
      await runtime.decide(asked.requestId, { verdict: "rejected" });
      await agent.turn("c#1").result;
      expect(till.paid).toEqual([]);
    });

    it("an approval of the arguments seen does not apply to a request that was changed since", async () => {
      const { request, forgedHash } = await waiting();
      change([
        { table: "journal", from: oldArguments, to: newArguments },
        { table: "journal", from: request.argumentsHash, to: forgedHash },
        { table: "requests", from: oldArguments, to: newArguments },
        { table: "requests", from: request.argumentsHash, to: forgedHash },
      ]);
      const till = openTill();
      const runtime = await stage().open({ agents: [clerkWith(till)] });
      const { requestId, argumentsHash } = request;
      await expect(runtime.decide(requestId, { verdict: "approved", argumentsHash })).rejects.toThrow(
        RequestConflictError,
      );
      const agent = await runtime.find("c");
      await agent.start();
      await agent.abort("tampered");
      expect((await agent.turn("c#1").result).status).toBe("stopped");
      expect(till.paid).toEqual([]);
    });

    it("a request whose arguments were changed cannot be approved, only rejected", async () => {
      const { request } = await waiting();
      change([{ table: "requests", from: oldArguments, to: newArguments }]);
      const till = openTill();
      const runtime = await stage().open({ agents: [clerkWith(till)] });
      const agent = await runtime.find("c");
      await agent.start();
      const { requestId, argumentsHash } = request;
      expect(await agent.requests()).toMatchObject([{ requestId, arguments: { amount: 5_000 } }]);
      for (const how of [{ by: "grace" }, { by: "grace", argumentsHash }]) {
        const approving = runtime.decide(requestId, { verdict: "approved", ...how });
        await expect(approving).rejects.toThrow(CorruptRecordError);
        await expect(approving).rejects.toThrow('request "c#1:1:0:1": its stored arguments were changed');
      }
      await runtime.decide(requestId, { verdict: "rejected", reason: "that is not what I was told" });
      expect((await agent.turn("c#1").result).text).toBe("the end");
      expect(till.paid).toEqual([]);
    });
  },
  ["sqlite", "sqlite, restored"],
);
