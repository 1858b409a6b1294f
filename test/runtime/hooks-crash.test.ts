import { expect, it } from "vitest";
import { defineAgent, type HookContext, textOf } from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { entriesOfType, loopTurns } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { createGate } from "../support/turn-probes.ts";

const sideQuestion = { messages: [{ role: "user", content: "sum up" }] } as const;

describeRuntimes("hooks after a crash", (stage) => {
  interface Work {
    readonly hooked: string[];
    readonly asked: string[];
    readonly hold?: ReturnType<typeof createGate> | undefined;
  }

  function definitionFor(name: string, work: Work, hook: (run: HookContext) => Promise<string>) {
    const script: ModelScript = ({ messages }) => {
      work.asked.push(`${name}: ${textOf(messages.at(-1)?.content ?? "")}`);
      return textOf(messages[0]?.content ?? "") === "sum up" ? `summary by ${name}` : "the end";
    };
    return defineAgent({
      name: "worker",
      model: scriptedModel(script),
      hooks: {
        beforeLlm: [
          () => void work.hooked.push(`${name}: committed`),
          async (draft, run) => {
            work.hooked.push(`${name}: cut`);
            draft.add({ role: "user", content: await hook(run) });
          },
        ],
      },
    });
  }

  it("a committed hook is never called again; a cut hook runs again and gets the answer it had received", async () => {
    const work: Work = { hooked: [], asked: [] };
    const hold = createGate();
    const first = definitionFor("first", work, async (run) => {
      const { content } = await run.generate(sideQuestion);
      await hold.pass();
      return content;
    });
    const second = definitionFor("second", work, async (run) => (await run.generate(sideQuestion)).content);
    const doomed = await stage().openProcess({ agents: [first] });
    const before = await doomed.runtime.agent("worker", { agentId: "worker-1" });
    await before.start();
    before.executeTurn("go");
    await hold.reached();
    // The answer is committed in the same event-loop turn in which it arrives.
    await loopTurns(5);
    doomed.kill();
    stage().expireLeases();
    const survivor = await stage().open({ agents: [second] });
    const agent = await survivor.find("worker-1");
    await survivor.recover();
    const result = await agent.turn("worker-1#1").result;
    hold.open();
    expect(result.text).toBe("the end");
    expect(work.hooked).toEqual(["first: committed", "first: cut", "second: cut"]);
    expect(work.asked).toEqual(["first: sum up", "second: summary by first"]);
    const answers = await entriesOfType(stage().look(), "worker-1", "generate.responded");
    expect(answers).toHaveLength(1);
  });

  it("F15: a side call in flight at the crash is settled in full, and a changed hook makes a new one", async () => {
    const work: Work = { hooked: [], asked: [] };
    const hold = createGate<string>();
    const script: ModelScript = () => hold.pass();
    const definition = defineAgent({
      name: "worker",
      model: scriptedModel(script),
      hooks: { beforeLlm: async (_draft, run) => void (await run.generate({ ...sideQuestion, maxOutputTokens: 400 })) },
    });
    const doomed = await stage().openProcess({ agents: [definition] });
    const before = await doomed.runtime.agent("worker", { agentId: "worker-1", budget: { maxTokens: 90_000 } });
    await before.start();
    before.executeTurn("go");
    await hold.reached();
    doomed.kill();
    stage().expireLeases();
    // The hook of the second process makes no side call; the open one must not stay reserved.
    const survivor = await stage().open({
      agents: [defineAgent({ name: "worker", model: scriptedModel("the end"), hooks: { beforeLlm: () => undefined } })],
    });
    const agent = await survivor.find("worker-1");
    await survivor.recover();
    expect((await agent.turn("worker-1#1").result).text).toBe("the end");
    const [failed] = await entriesOfType(stage().look(), "worker-1", "generate.failed");
    expect(failed?.settlement).toMatchObject({ unconfirmed: true });
    const account = (await stage().look().accounts("default", "worker-1")).find(({ id }) => id === "agent:worker-1");
    expect(account?.reserved.tokens).toBe(0);
    expect(account?.unconfirmed.tokens).toBe(failed?.settlement.tokens);
    expect(work.asked).toEqual([]);
  });
});
