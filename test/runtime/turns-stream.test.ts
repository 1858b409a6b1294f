import { expect, it } from "vitest";
import { defineAgent, defineTool, type TroupeEvent, type Turn } from "../../src/index.ts";
import { troupeEventSchema } from "../../src/state/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { z } from "zod";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, eventsOfTurn, typesOf } from "../support/turn-probes.ts";

const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({}),
  effect: "none",
  execute: () => "seen",
});

const durable = (events: readonly TroupeEvent[]) => events.filter(({ cursor }) => cursor !== null);

describeRuntimes("the stream of a turn", (stage) => {
  const open = async (script: Parameters<typeof scriptedModel>[0]) => {
    const model = scriptedModel(script);
    const runtime = await stage().open({ agents: [defineAgent({ name: "looker", model, tools: [look] })] });
    const agent = await runtime.agent("looker", { agentId: "l", sessionId: "session-1" });
    await agent.start();
    return { runtime, agent, model };
  };

  it("L8: yields the events in order, each with its cursor, up to the turn's end", async () => {
    const { agent } = await open([calling("look"), "done"]);
    const events = await eventsOfTurn(agent.executeTurn("go"));
    expect(typesOf(durable(events))).toEqual([
      "lifecycle.changed",
      "turn.started",
      "step.started",
      "model.responded",
      "tool.started",
      "tool.completed",
      "step.completed",
      "step.started",
      "model.responded",
      "turn.completed",
    ]);
    const parsed = events.map((event) => troupeEventSchema.parse(event));
    expect(parsed).toEqual(events);
    for (const event of events) {
      expect(event).toMatchObject({ agentId: "l", rootAgentId: "l", sessionId: "session-1", parentAgentId: null });
      expect(event.turnId).toBe("l#1");
    }
    expect(events.at(-1)).toMatchObject({ type: "turn.completed", text: "done", steps: 2, toolCalls: 1 });
    const rows = durable(events).map(({ cursor }) => (cursor ?? "").split(".").map(Number));
    const sorted = rows.toSorted(
      (a, b) => (a[0] ?? 0) - (b[0] ?? 0) || (a[1] ?? 0) - (b[1] ?? 0) || (a[2] ?? 0) - (b[2] ?? 0),
    );
    expect(rows).toEqual(sorted);
    expect(new Set(rows.map(String)).size).toBe(rows.length);
  });

  it("L8: deltas arrive while the model streams, and have no cursor", async () => {
    const { agent } = await open([{ deltas: ["Hel", "lo"], reasoning: "hm" }]);
    const events = await eventsOfTurn(agent.executeTurn("go"));
    const texts = events.flatMap((event) => (event.type === "text.delta" ? [event.text] : []));
    expect(texts).toEqual(["Hel", "lo"]);
    expect(events.find(({ type }) => type === "text.delta")?.cursor).toBeNull();
    const place = typesOf(events).indexOf("text.delta");
    expect(place).toBeLessThan(typesOf(events).indexOf("model.responded"));
    expect(events.at(-1)).toMatchObject({ type: "turn.completed", text: "Hello" });
  });

  it("L8: a late iteration replays the same events from the journal", async () => {
    const { agent } = await open([calling("look"), "done"]);
    const turn = agent.executeTurn("go");
    const live = durable(await eventsOfTurn(turn));
    await turn.result;
    expect(durable(await eventsOfTurn(turn))).toEqual(live);
    expect(durable(await eventsOfTurn(agent.turn(await turn.id)))).toEqual(live);
  });

  it("L8: a caller that did not start the turn can follow it from the beginning", async () => {
    const gate = createGate<string>();
    const { agent, runtime } = await open((_request, { signal }) => gate.pass(signal));
    const turn = agent.executeTurn("go");
    await gate.reached();
    const other = (await runtime.find("l")).openTurn() as Turn;
    const seen = eventsOfTurn(other);
    gate.open("done");
    expect(typesOf(durable(await seen))).toEqual([
      "lifecycle.changed",
      "turn.started",
      "step.started",
      "model.responded",
      "turn.completed",
    ]);
    expect((await other.result).text).toBe("done");
    expect((await turn.result).text).toBe("done");
    expect((await runtime.find("l")).openTurn()).toBeUndefined();
  });

  it("L8: an observer gets next and complete, and nothing after unsubscribe()", async () => {
    const { agent } = await open(["one", "two"]);
    const turn = agent.executeTurn("go");
    const seen: string[] = [];
    await new Promise<void>((resolve, reject) => {
      turn.subscribe({ next: ({ type }) => seen.push(type), error: reject, complete: resolve });
    });
    expect(seen.at(0)).toBe("lifecycle.changed");
    expect(seen.at(-1)).toBe("turn.completed");

    const second = agent.executeTurn("go");
    const cut: string[] = [];
    const subscription = second.subscribe((event) => {
      cut.push(event.type);
      subscription.unsubscribe();
    });
    await second.result;
    expect(cut).toEqual(["lifecycle.changed"]);
  });

  it("L8: RxJS treats it as an async iterable, never as a promise", async () => {
    const { agent } = await open("fine");
    const turn = agent.executeTurn("go");
    // As from() does with its source: a `then` method would make it a promise; otherwise it iterates.
    expect("then" in turn).toBe(false);
    const seen: string[] = [];
    const subscriber = { next: ({ type }: TroupeEvent) => seen.push(type), complete: () => seen.push("complete") };
    for await (const event of { [Symbol.asyncIterator]: () => turn[Symbol.asyncIterator]() }) subscriber.next(event);
    subscriber.complete();
    expect(seen.slice(-2)).toEqual(["turn.completed", "complete"]);
  });

  it("an observer that throws affects neither the turn nor other observers", async () => {
    const { agent } = await open("fine");
    const turn = agent.executeTurn("go");
    const seen: string[] = [];
    const failed = new Promise<unknown>((resolve) => {
      turn.subscribe({
        next: () => {
          throw new Error("observer broke");
        },
        error: resolve,
      });
    });
    turn.subscribe(({ type }) => seen.push(type));
    expect((await turn.result).status).toBe("completed");
    expect(String(await failed)).toContain("observer broke");
    await eventsOfTurn(turn);
    expect(seen.at(-1)).toBe("turn.completed");
  });

  it("many concurrent readers cause no leak warning", async () => {
    const { agent, runtime } = await open(["fine"]);
    const turn = agent.executeTurn("go");
    const readers = Array.from({ length: 30 }, () => eventsOfTurn(turn));
    const followers = Array.from({ length: 30 }, async () => {
      for await (const { type } of runtime.follow("l")) if (type === "turn.completed") return type;
      return "ended";
    });
    await turn.result;
    for (const events of await Promise.all(readers)) expect(events.at(-1)?.type).toBe("turn.completed");
    expect(new Set(await Promise.all(followers))).toEqual(new Set(["turn.completed"]));
  });

  it("a reader can leave early without affecting the turn", async () => {
    const { agent } = await open([calling("look"), "done"]);
    const turn = agent.executeTurn("go");
    for await (const event of turn) if (event.type === "turn.started") break;
    expect((await turn.result).text).toBe("done");
  });

  it("a refused turn rejects its stream, result and settled", async () => {
    const gate = createGate<string>();
    const { agent } = await open((_request, { signal }) => gate.pass(signal));
    const first = agent.executeTurn("one");
    const second = agent.executeTurn("two");
    await expect(eventsOfTurn(second)).rejects.toMatchObject({ code: "agent_busy" });
    const error = await new Promise<unknown>((resolve) => second.subscribe({ error: resolve }));
    expect(error).toMatchObject({ code: "agent_busy" });
    gate.open("x");
    await first.result;
  });
});
