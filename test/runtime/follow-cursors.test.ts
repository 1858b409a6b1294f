import { expect, it } from "vitest";
import { z } from "zod";
import {
  defineAgent,
  defineTool,
  InvalidInputError,
  NotFoundError,
  type Runtime,
  subagent,
  type TroupeEvent,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { elapse } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, eventsOfTurn, type Gate } from "../support/turn-probes.ts";

const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({}),
  effect: "none",
  execute: () => "seen",
});

/** Starts two children at a time; each calls a tool before it answers. */
function team(gate?: Gate<string>) {
  const child = defineAgent({
    name: "child",
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "tool" ? { deltas: ["child ", "done"] } : calling("look"),
    ),
    tools: [look],
  });
  const asked = { name: "child", arguments: { input: "x" } };
  return defineAgent({
    name: "lead",
    model: scriptedModel(async ({ messages }, { signal }) => {
      if (messages.at(-1)?.role !== "tool") return calling(asked, asked, "look");
      await gate?.pass(signal);
      return { deltas: ["all ", "done"] };
    }),
    tools: [subagent(child), look],
  });
}

const isEnd = ({ type, agentId }: TroupeEvent): boolean => type === "turn.completed" && agentId === "f";

async function followed(runtime: Runtime, after?: string, until = isEnd): Promise<TroupeEvent[]> {
  const events: TroupeEvent[] = [];
  for await (const event of runtime.follow("f", { after })) {
    events.push(event);
    if (until(event)) break;
  }
  return events;
}

const rowOf = (cursor: string | null) => Number(cursor?.split(".")[0]);

const durable = (events: readonly TroupeEvent[]) => events.filter(({ cursor }) => cursor !== null);

describeRuntimes("follow", (stage) => {
  it("F28: continues after any cursor without gaps or duplicates", async () => {
    const runtime = await stage().open({ agents: [team()] });
    const agent = await runtime.agent("lead", { agentId: "f" });
    const live = followed(runtime);
    await agent.start();
    await agent.executeTurn("go").result;
    const all = durable(await live);
    expect(durable(await followed(runtime))).toEqual(all);
    expect(durable(await followed(runtime, "0.0.0"))).toEqual(all);
    expect(all.length).toBeGreaterThan(30);
    expect(new Set(all.map(({ cursor }) => cursor)).size).toBe(all.length);
    expect(new Set(all.map(({ agentId }) => agentId)).size).toBe(3);
    for (const [index, { cursor }] of all.slice(0, -1).entries()) {
      expect(durable(await followed(runtime, cursor ?? ""))).toEqual(all.slice(index + 1));
    }
  });

  it("yields live events after the stored ones, including deltas", async () => {
    const gate = createGate<string>();
    const runtime = await stage().open({ agents: [team(gate)] });
    const agent = await runtime.agent("lead", { agentId: "f" });
    await agent.start();
    const all = followed(runtime);
    const turn = agent.executeTurn("go");
    await gate.reached();
    const early = await followed(runtime, undefined, ({ type }) => type === "subagent.ended");
    gate.open("x");
    await turn.result;
    const events = await all;
    expect(durable(events).slice(0, early.length)).toEqual(durable(early));
    const texts = events.flatMap((event) => (event.type === "text.delta" && event.agentId === "f" ? [event.text] : []));
    expect(texts.join("")).toBe("all done");
    expect(durable(events).at(-1)).toMatchObject({ type: "turn.completed", text: "all done" });
  });

  it("from now yields only events after the call, even if the first event is requested later", async () => {
    const runtime = await stage().open({ agents: [team()] });
    const agent = await runtime.agent("lead", { agentId: "f" });
    await agent.start();
    await agent.executeTurn("one").result;
    const events = runtime.follow("f", { after: "now" })[Symbol.asyncIterator]();
    const { cursor } = await runtime.head("f");
    await agent.executeTurn("two").result;
    const seen: TroupeEvent[] = [];
    while (!seen.some(isEnd)) {
      const { value } = (await events.next()) as IteratorYieldResult<TroupeEvent>;
      seen.push(value);
    }
    const second = durable(seen);
    expect(second.find(({ type }) => type === "turn.started")).toMatchObject({ turnId: "f#2" });
    expect(second.filter(({ turnId }) => turnId === "f#1")).toEqual([]);
    expect(durable(await followed(runtime, cursor))).toEqual(second);
    const all = durable(await followed(runtime, undefined, (event) => isEnd(event) && event.turnId === "f#2"));
    expect(all.slice(-second.length)).toEqual(second);
    for (const after of ["now", undefined]) {
      const gone = runtime.follow("nobody", { after })[Symbol.asyncIterator]();
      await expect(gone.next()).rejects.toThrow(NotFoundError);
    }
  });

  it("the head of a tree plus the events after it have no gap or duplicate, in mid-turn too", async () => {
    const gate = createGate<string>();
    const runtime = await stage().open({ agents: [team(gate)] });
    const agent = await runtime.agent("lead", { agentId: "f", budget: { maxTokens: 100_000 } });
    expect(await runtime.head("f")).toMatchObject({ cursor: "1.0.0", requests: [] });
    await agent.start();
    const turn = agent.executeTurn("go");
    await gate.reached();
    const head = await runtime.head("f");
    expect(head.agents.map(({ agentId, status }) => [agentId === "f", status])).toEqual([
      [true, "busy"],
      [false, "ready"],
      [false, "ready"],
    ]);
    expect(head.accounts).toEqual(await runtime.accounts("f"));
    gate.open("x");
    await turn.result;
    const all = durable(await followed(runtime));
    const after = durable(await followed(runtime, head.cursor));
    expect(after.length).toBeGreaterThan(1);
    expect(all.slice(-after.length)).toEqual(after);
    expect(all.at(-after.length - 1)?.cursor).not.toBe(after[0]?.cursor);
    // Every earlier event is in a row before the head.
    for (const [index, { cursor }] of all.entries()) {
      expect(rowOf(cursor) < rowOf(head.cursor)).toBe(index < all.length - after.length);
    }
    const childId = head.agents.find(({ agentId }) => agentId !== "f")?.agentId ?? "";
    await expect(runtime.head(childId)).rejects.toThrow(/in the tree "f"/);
    await expect(runtime.head("nobody")).rejects.toThrow(NotFoundError);
    await expect(runtime.head(7 as never)).rejects.toThrow(InvalidInputError);
  });

  it("the head of an unsaved tree works the same before and after the save", async () => {
    const before = await stage().open({ agents: [team()] });
    const first = await before.agent("lead", { agentId: "f" });
    await first.start();
    await first.executeTurn("one").result;
    await before.shutdown();
    const runtime = await stage().open({ agents: [team()] });
    const agent = await runtime.agent("lead", { agentId: "f", autoSave: false });
    await agent.start();
    const { cursor } = await runtime.head("f");
    await agent.executeTurn("two").result;
    const unsaved = durable(await followed(runtime, cursor));
    expect(
      unsaved.filter(({ type }) => type === "turn.started").map(({ turnId, agentId }) => [agentId, turnId])[0],
    ).toEqual(["f", "f#2"]);
    expect(unsaved.filter(({ turnId }) => turnId === "f#1")).toEqual([]);
    await agent.saveState();
    expect(durable(await followed(runtime, cursor)).map(({ type }) => type)).toEqual(unsaved.map(({ type }) => type));
  });

  it("refuses values that are not cursors, and returns no events of other trees", async () => {
    const runtime = await stage().open({ agents: [team()] });
    for (const agentId of ["f", "g"]) {
      const agent = await runtime.agent("lead", { agentId });
      await agent.start();
      await agent.executeTurn("go").result;
    }
    await expect(followed(runtime, "yesterday")).rejects.toThrow(InvalidInputError);
    const events = await followed(runtime);
    expect(new Set(events.map(({ rootAgentId }) => rootAgentId))).toEqual(new Set(["f"]));
  });

  it("ends with its signal and with the runtime", async () => {
    const runtime = await stage().open({ agents: [team()] });
    const agent = await runtime.agent("lead", { agentId: "f" });
    await agent.start();
    const controller = new AbortController();
    const reading = async (signal?: AbortSignal): Promise<string[]> => {
      const types: string[] = [];
      for await (const { type } of runtime.follow("f", { signal })) types.push(type);
      return types;
    };
    const cut = reading(controller.signal);
    const whole = reading();
    await agent.executeTurn("go").result;
    controller.abort();
    expect((await cut).length).toBeGreaterThan(0);
    await runtime.shutdown();
    expect(await whole).toContain("turn.completed");
  });

  it("F28: a cursor of one process is valid in the next", async () => {
    const first = await stage().open({ agents: [team()] });
    const before = await first.agent("lead", { agentId: "f" });
    await before.start();
    await before.executeTurn("one").result;
    const seen = durable(await followed(first));
    await first.shutdown();
    const second = await stage().open({ agents: [team()] });
    const agent = await second.agent("lead", { agentId: "f" });
    await agent.start();
    const turn = agent.executeTurn("two");
    const own = durable(await eventsOfTurn(turn));
    const after = durable(await followed(second, seen.at(-1)?.cursor ?? ""));
    expect(after.filter(({ turnId }) => turnId === "f#2")).toEqual(own.filter(({ turnId }) => turnId === "f#2"));
    const again = durable(await followed(second, undefined, (event) => isEnd(event) && event.turnId === "f#2"));
    expect(again).toEqual([...seen, ...after]);
  });

  it("a reader in another process receives the same events", async () => {
    const gate = createGate<string>();
    const owner = await stage().open({ agents: [team(gate)] });
    const onlooker = await stage().open({ agents: [team()] });
    const agent = await owner.agent("lead", { agentId: "f" });
    await agent.start();
    const there = followed(onlooker);
    const turn = agent.executeTurn("go");
    await gate.reached();
    gate.open("x");
    await turn.result;
    const seen = await elapse(stage().clock, there, 500);
    expect(durable(seen)).toEqual(durable(await followed(owner)));
  });
});
