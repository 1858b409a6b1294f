// `retention`: trees that are not used any more are deleted in the background.
import { expect, it } from "vitest";
import { z } from "zod";
import { createRuntime, defineAgent, defineTool } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { OwnMessages } from "../support/own-stores.ts";
import { describeRuntimes } from "../support/runtimes.ts";

const pay = defineTool({
  name: "pay",
  description: "Pays.",
  parameters: z.object({}),
  needsApproval: true,
  execute: () => "paid",
});
const clerk = defineAgent({
  name: "clerk",
  model: scriptedModel(({ messages }) =>
    messages.at(-1)?.content === "Pay." ? { toolCalls: [{ name: "pay", arguments: {} }] } : "Done.",
  ),
  tools: [pay],
});
const retention = { endedAfterMs: 60_000, everyMs: 1_000 };

describeRuntimes("retention", (stage) => {
  it("deletes what is old, in one of several processes, and nothing that is used or waits", async () => {
    const deletions: string[] = [];
    const last = Promise.withResolvers<void>();
    const messages = Object.assign(new OwnMessages(), {
      async delete(agentId: string) {
        deletions.push(agentId);
        if (agentId === "fresh") last.resolve();
      },
    });
    const options = { agents: [clerk], projections: { messages }, retention };
    const runtimes = [await stage().open(options), await stage().open(options)];
    const [runtime] = runtimes;
    const turnOf = async (agentId: string, input: string): Promise<void> => {
      const agent = await runtime?.agent("clerk", { agentId });
      await agent?.start();
      await agent?.executeTurn(input).settled;
    };
    await turnOf("old", "Go.");
    await turnOf("asks", "Pay.");
    await turnOf("planned", "Go.");
    await runtime?.schedule("yearly", { agent: "clerk", agentId: "planned", input: "Go.", cron: "0 0 1 1 *" });
    await runtime?.agent("clerk", { agentId: "never-started" });
    stage().clock.advance(30_000);
    await turnOf("fresh", "Go.");
    for (let passed = 0; passed < 70; passed += 1) stage().clock.advance(1_000);
    await last.promise;
    // A pass deletes the newest roots first; the deletions of the older ones may still be under way.
    while ((await runtime?.list())?.length !== 2) stage().clock.advance(1_000);
    expect((await runtime?.list())?.map(({ agentId }) => agentId)).toEqual(["asks", "planned"]);
    const stored = await stage().look().deletions({ tenant: "default" });
    expect(stored).toHaveLength(3);
    expect(new Set(stored.map(({ reason, by }) => `${reason} ${by}`))).toEqual(new Set(["retention retention"]));
  });
});

it.each([
  [{ endedAfterMs: 10 }, "retention.endedAfterMs"],
  [{ endedAfterMs: "30d" }, "retention.endedAfterMs"],
  [{}, "retention"],
  [{ endedAfterMs: 5_000, everyMs: 0 }, "retention.everyMs"],
  [{ endedAfterMs: 5_000, keepCopies: "yes" }, "retention.keepCopies"],
  [{ ttl: 5_000 }, "endedAfterMs"],
  [30, "retention"],
])("wrong retention %j is refused", async (wrong, named) => {
  await expect(createRuntime({ agents: [clerk], retention: wrong as never })).rejects.toThrow(named);
});
