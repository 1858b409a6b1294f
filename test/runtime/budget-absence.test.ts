import { expect, it } from "vitest";
import { defineAgent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";

describeRuntimes(
  "time without a running process",
  (stage) => {
    it("does not count against maxSeconds: a turn continues long after its process died", async () => {
      const { clock } = stage();
      const called = Promise.withResolvers<void>();
      const stuck = scriptedModel(() => {
        called.resolve();
        return { text: "never", delayUntil: new Promise(() => undefined) };
      });
      const budget = { maxSeconds: 60 };
      const died = await stage().openProcess({ agents: [defineAgent({ name: "worker", model: stuck, budget })] });
      const first = await died.runtime.agent("worker", { agentId: "desk" });
      await first.start();
      await first.executeTurn("work").id;
      await called.promise;
      clock.advance(5_000);
      died.kill();
      clock.advance(3_600_000);

      const model = scriptedModel("done after all");
      const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model, budget })] });
      const agent = await runtime.agent("worker", { agentId: "desk" });
      await agent.start();
      const result = await agent.turn("desk#1").result;

      expect(result).toMatchObject({ status: "completed", text: "done after all" });
      const [account] = await runtime.accounts("desk");
      expect(account?.used.activeMs).toBeLessThan(60_000);
      expect(account).toMatchObject({ activeCount: 0, activeSince: null });
    });
  },
  ["memory", "sqlite"],
);
