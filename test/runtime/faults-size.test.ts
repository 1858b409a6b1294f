import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { z } from "zod";
import { AgentBusyError, defineAgent, defineTool, textOf } from "../../src/index.ts";
import { isLegal } from "../../src/context/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { amount } from "../support/full.ts";
import { entriesOfType, orderFault, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

const megabyte = 1_000_000;
const hugeSize = amount(100, 30) * megabyte;
const nothing = z.object({});

function deep(levels: number): unknown {
  let value: unknown = "bottom";
  for (let level = 0; level < levels; level += 1) value = [value];
  return value;
}

/** Bytes in use after a full collection, including buffers and strings outside the heap. */
function heldBytes(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

describeRuntimes(
  "huge tool outputs",
  (stage) => {
    it(`S12: ${hugeSize / megabyte} MB are stored as an artifact; the model gets an excerpt, and memory does not grow`, async () => {
      const huge = defineTool({
        name: "huge",
        description: "Gives a great deal.",
        parameters: nothing,
        effect: "none",
        execute: () => `begin${"x".repeat(hugeSize - 8)}end`,
      });
      const model = scriptedModel(({ messages }) => (messages.at(-1)?.role === "tool" ? "done" : calling("huge")));
      const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model, tools: [huge] })] });
      const agent = await runtime.agent("worker", { agentId: "w" });
      await agent.start();
      expect((await agent.executeTurn("warm up").result).status).toBe("completed");
      const before = heldBytes();
      const rounds = 3;
      for (let round = 0; round < rounds; round += 1) {
        expect((await agent.executeTurn("go").result).status).toBe("completed");
      }
      // After three such outputs, less than one of them is still in memory.
      expect(heldBytes() - before).toBeLessThan(hugeSize / 2);
      const excerpt = textOf(model.calls.at(-1)?.messages.at(-1)?.content ?? "");
      expect(excerpt.length).toBeLessThanOrEqual(32_000);
      expect(excerpt).toMatch(/^beginx+/);
      expect(excerpt).toMatch(/x+end$/);
      expect(excerpt).toMatch(
        new RegExp(
          `of ${hugeSize} characters were cut here; read_artifact shows them\\. The whole text is stored as artifact artifact`,
        ),
      );
      const artifacts = await agent.getArtifacts();
      expect(artifacts.map(({ size }) => size)).toEqual([hugeSize, hugeSize, hugeSize, hugeSize]);
      const [artifactId = ""] = /artifact[-_][\w-]+/.exec(excerpt) ?? [];
      const stored = await agent.getArtifact(artifactId);
      expect(stored?.content).toHaveLength(hugeSize);
      expect(stored?.content.endsWith("xend")).toBe(true);
      for (const { messages } of model.calls) expect(isLegal(messages)).toBeUndefined();
    });
  },
  ["sqlite"],
);

describeRuntimes("deep and odd tool outputs", (stage) => {
  it.each([
    { title: "JSON of 100,000 levels", output: () => deep(100_000), told: /nested too deeply or too large/ },
    { title: "a cyclic value", output: () => globalThis, told: /cannot be shown/ },
    { title: "an array of 20 million values", output: () => Array(20_000_000), told: /more than 10000000 values/ },
    { title: `${hugeSize / megabyte} MB of bytes`, output: () => new Uint8Array(hugeSize), told: /binary data/ },
  ])("S12: $title: the model gets a note that it cannot be shown, and the turn continues", async ({ output, told }) => {
    const odd = defineTool({
      name: "odd",
      description: "Gives something odd.",
      parameters: nothing,
      effect: "none",
      execute: output,
    });
    const model = scriptedModel([calling("odd"), "done"]);
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model, tools: [odd] })] });
    const agent = await runtime.agent("worker", { agentId: "w" });
    await agent.start();
    expect(await agent.executeTurn("go").result).toMatchObject({ status: "completed", text: "done" });
    expect(await toolTextsOf(agent)).toEqual([expect.stringMatching(told)]);
    expect(await agent.getArtifacts()).toEqual([]);
  });
});

describeRuntimes(
  "a flood of turns",
  (stage) => {
    const calls = amount(1_000, 100);

    async function busy() {
      const gate = createGate<string>();
      const model = scriptedModel((_request, { index }) => (index === 0 ? gate.pass() : "done"));
      const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model })] });
      const agent = await runtime.agent("worker", { agentId: "w" });
      await agent.start();
      const first = agent.executeTurn("first");
      await gate.reached();
      return { agent, model, gate, first };
    }

    it(`S12: ${calls} calls on a busy agent are refused, each with a typed error, and cost nothing`, async () => {
      const { agent, model, gate, first } = await busy();
      const turns = Array.from({ length: calls }, () => agent.executeTurn("flood"));
      const ends = await Promise.allSettled(turns.map(({ result }) => result));
      const refused = ends.filter((end) => end.status === "rejected" && end.reason instanceof AgentBusyError);
      expect(refused).toHaveLength(calls);
      gate.open("the first");
      expect((await first.result).text).toBe("the first");
      expect(model.calls).toHaveLength(1);
      expect(await agent.getMessages()).toHaveLength(2);
      expect(agent.state).toMatchObject({ status: "ready", turnCount: 1 });
      expect((await agent.executeTurn("next").result).status).toBe("completed");
    });

    it(`S12: ${calls} queued turns run once each, in order, and none is lost`, async () => {
      const { agent, model, gate, first } = await busy();
      const turns = Array.from({ length: calls }, (_, index) =>
        agent.executeTurn(`turn ${index}`, { ifBusy: "queue" }),
      );
      const ids = await Promise.all(turns.map(({ id }) => id));
      expect(ids).toEqual(Array.from({ length: calls }, (_, index) => `w#${index + 2}`));
      gate.open("the first");
      await first.result;
      const ends = await Promise.all(turns.map(({ result }) => result));
      expect(ends.filter(({ status }) => status === "completed")).toHaveLength(calls);
      expect(model.calls).toHaveLength(calls + 1);
      const asked = (await agent.getMessages()).filter(({ role }) => role === "user").map(({ content }) => content);
      expect(asked).toEqual(["first", ...Array.from({ length: calls }, (_, index) => `turn ${index}`)]);
      expect(agent.state).toMatchObject({ status: "ready", turnCount: calls + 1 });
      expect(await entriesOfType(stage().look(), "w", "turn.ended")).toHaveLength(calls + 1);
      expect(orderFault(await agent.getMessages())).toBeUndefined();
    });
  },
  ["memory", "sqlite"],
);
