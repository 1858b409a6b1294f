import { describe, expect, test } from "vitest";
import { createRuntime, memoryStores } from "../../src/index.ts";
import { fork, type ForkEdit } from "../../src/testing/index.ts";
import { clerkOn, thinker } from "../support/strict-clerk.ts";
import { startStrictServer } from "../support/strict-thinking.ts";

const edits: readonly { readonly name: string; readonly edit: ForkEdit; readonly changes: boolean }[] = [
  { name: "no change", edit: {}, changes: false },
  { name: "another prompt", edit: { messages: { "desk#1:in": "Something else?" } }, changes: true },
  { name: "another result", edit: { messages: { "desk#1:1:0": "w0: lost" } }, changes: true },
  { name: "another answer", edit: { messages: { "desk#1:2": "Edited." } }, changes: true },
  { name: "other instructions", edit: { instructions: "Be long." }, changes: true },
];

describe.each(["messages", "chat"] as const)(
  "a fork on a provider that binds thinking to its prefix, by %s",
  (protocol) => {
    test.each(edits)("after $name sends only thinking whose prefix is unchanged", async ({ edit, changes }) => {
      const server = await startStrictServer(thinker("ctct"));
      const clerk = clerkOn(server[protocol]());
      const stores = memoryStores();
      const runtime = await createRuntime({ agents: [clerk], stores });
      const agent = await runtime.agent("clerk", { agentId: "desk" });
      await agent.start();
      for (const input of ["One?", "Two?"]) await agent.executeTurn(input).result;
      const asked = server.requests.length;
      const usual = server.requests.at(-1)?.thoughts ?? 0;
      const made = await fork({ stores, agentId: "desk" }, { at: { turn: 2, step: 2 }, agents: clerk, edit });
      const { status } = await made.turn.result;
      await made.close();
      await runtime.shutdown();
      expect([status, server.refusals, server.leftOut]).toEqual(["completed", [], []]);
      const sent = server.requests[asked]?.thoughts ?? -1;
      expect([sent < usual, sent <= usual]).toEqual([changes, true]);
    });
  },
);
