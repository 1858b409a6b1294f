import { expect, it } from "vitest";
import { z } from "zod";
import { createDeferred } from "../../src/base/index.ts";
import {
  defineAgent,
  defineTool,
  ModelError,
  type Runtime,
  type RuntimeOptions,
  type TroupeEvent,
} from "../../src/index.ts";
import { troupeEventSchema } from "../../src/state/index.ts";
import type { FakeClock } from "../../src/testing/index.ts";
import { elapse, loopTurns } from "../support/journal-probes.ts";
import { describeRuntimes, type Stage } from "../support/runtimes.ts";
import { SpokenModel } from "../support/spoken-model.ts";
import { TextClient } from "../support/text-client.ts";

const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({}),
  effect: "none",
  execute: () => "seen",
});

/** A reader of one tree, event by event. */
class Reader {
  readonly client: TextClient;
  readonly events: TroupeEvent[] = [];
  readonly #clock: FakeClock;
  readonly #leaving = new AbortController();
  readonly #stream: AsyncIterator<TroupeEvent>;
  #taken = 0;
  #arrived = createDeferred();

  /** `isSlow`: it takes an event only when it is asked for it. */
  constructor({ clock }: Stage, runtime: Runtime, options: { client?: TextClient; isSlow?: boolean } = {}) {
    this.#clock = clock;
    this.client = options.client ?? new TextClient();
    const follow = { after: this.client.cursor, signal: this.#leaving.signal };
    this.#stream = runtime.follow("f", follow)[Symbol.asyncIterator]();
    if (!options.isSlow) void this.#pump();
  }

  /** The next event of this kind. */
  async until<Type extends TroupeEvent["type"]>(type: Type): Promise<Extract<TroupeEvent, { type: Type }>> {
    const read = async (): Promise<TroupeEvent> => {
      for (;;) {
        const event = this.events[this.#taken] ?? (await this.#next());
        this.#taken += 1;
        if (event.type === type) return event;
      }
    };
    return (await elapse(this.#clock, read(), 20)) as Extract<TroupeEvent, { type: Type }>;
  }

  leave(): void {
    this.#leaving.abort();
  }

  async #next(): Promise<TroupeEvent> {
    if (!this.#isPumped && !(await this.#take())) throw new Error("the stream has ended");
    for (let event = this.events[this.#taken]; ; event = this.events[this.#taken]) {
      if (event) return event;
      this.#arrived = createDeferred();
      await this.#arrived.promise;
    }
  }

  #isPumped = false;
  async #pump(): Promise<void> {
    this.#isPumped = true;
    while (await this.#take()) this.#arrived.resolve();
  }

  async #take(): Promise<boolean> {
    const { value, done } = await this.#stream.next();
    if (done) return false;
    const event = troupeEventSchema.parse(value);
    this.events.push(event);
    this.client.take(event);
    return true;
  }
}

async function opened(stage: Stage, options: Pick<RuntimeOptions, "streaming"> = {}) {
  const spoken = new SpokenModel();
  const definition = defineAgent({ name: "speaker", model: spoken.model, tools: [look] });
  const owner = await stage.openProcess({ agents: [definition], ...options });
  const agent = await owner.runtime.agent("speaker", { agentId: "f" });
  await agent.start();
  return { spoken, definition, owner, runtime: owner.runtime, agent };
}

/** Somebody elsewhere follows, and the owner has heard of it. */
async function heard(runtime: Runtime): Promise<void> {
  const place = { tenant: runtime.tenant, rootAgentId: "f", processId: "somebody" };
  while (!runtime.stores.live.isFollowed(place)) await loopTurns(1);
}

describeRuntimes(
  "live texts in one process",
  (stage) => {
    it("a delta tells where it belongs: after which event, which step and attempt, at which offset", async () => {
      const { spoken, runtime, agent } = await opened(stage());
      const reader = new Reader(stage(), runtime);
      await reader.until("lifecycle.changed");
      const turn = agent.executeTurn("go");
      const speech = await spoken.next();
      speech.think("hm");
      speech.say("Hel");
      speech.say("lo");
      expect(await reader.until("reasoning.delta")).toMatchObject({ offset: 0, text: "hm", step: 1, attempt: 1 });
      expect(await reader.until("text.delta")).toMatchObject({ offset: 0, text: "Hel", turnId: "f#1", cursor: null });
      const second = await reader.until("text.delta");
      expect(second).toMatchObject({ offset: 3, text: "lo" });
      const started = reader.events.findLast(({ type }) => type === "step.started");
      expect(second.after).toBe(started?.cursor);
      speech.end();
      await turn.result;
      await reader.until("turn.completed");
      expect(reader.client.faults).toEqual([]);
      expect(reader.client.snapshots).toEqual([]);
      expect(reader.client.textOf("f", "f#1", 1)).toBe("Hello");
      reader.leave();
    });

    it("F28: who comes in the middle of an answer gets all of it once, and goes on from there", async () => {
      const { spoken, runtime, agent } = await opened(stage());
      const early = new Reader(stage(), runtime);
      await early.until("lifecycle.changed");
      const turn = agent.executeTurn("go");
      const speech = await spoken.next();
      speech.think("First.");
      speech.say("Once upon ");
      const late = new Reader(stage(), runtime);
      const snapshot = await late.until("text.snapshot");
      expect(snapshot).toMatchObject({ text: "Once upon ", reasoning: "First.", offset: 10, step: 1, attempt: 1 });
      speech.say("a time");
      expect(await late.until("text.delta")).toMatchObject({ offset: 10, text: "a time" });
      speech.end();
      await turn.result;
      for (const reader of [early, late]) {
        await reader.until("turn.completed");
        expect(reader.client.faults).toEqual([]);
        expect(reader.client.textOf("f", "f#1", 1)).toBe("Once upon a time");
        reader.leave();
      }
      expect(late.client.snapshots).toHaveLength(1);
      expect(early.client.snapshots).toEqual([]);
    });

    it("F28: who leaves in the middle and comes back after the answer has all of it too, of a step that is no end", async () => {
      const { spoken, runtime, agent } = await opened(stage());
      const reader = new Reader(stage(), runtime);
      await reader.until("lifecycle.changed");
      const turn = agent.executeTurn("go");
      const first = await spoken.next();
      first.say("Let me ");
      await reader.until("text.delta");
      reader.leave();
      first.say("look.");
      first.end("look");
      const second = await spoken.next();
      const back = new Reader(stage(), runtime, { client: reader.client });
      expect(await back.until("text.snapshot")).toMatchObject({ step: 1, text: "Let me look.", reasoning: null });
      second.say("Seen.");
      second.end();
      await turn.result;
      await back.until("turn.completed");
      expect(back.client.faults).toEqual([]);
      expect(back.client.textOf("f", "f#1", 1)).toBe("Let me look.");
      expect(back.client.textOf("f", "f#1", 2)).toBe("Seen.");
      back.leave();
    });

    it("an answer that began while nobody was there for a moment is streamed all the same", async () => {
      const { spoken, runtime, agent } = await opened(stage());
      const reader = new Reader(stage(), runtime);
      await reader.until("lifecycle.changed");
      reader.leave();
      await loopTurns(3);
      void agent.executeTurn("go").result;
      const speech = await spoken.next();
      speech.say("You are ");
      const back = new Reader(stage(), runtime, { client: reader.client });
      expect(await back.until("text.snapshot")).toMatchObject({ text: "You are " });
      speech.say("back.");
      speech.end();
      expect(await back.until("turn.completed")).toMatchObject({ text: "You are back." });
      expect(back.client.faults).toEqual([]);
      back.leave();
    });

    it("nobody there: the model is asked for one whole answer, and nothing of it is shown later but its end", async () => {
      const { spoken, runtime, agent } = await opened(stage());
      const turn = agent.executeTurn("go");
      const speech = await spoken.next();
      expect(speech.isStreamed).toBe(false);
      const reader = new Reader(stage(), runtime);
      await reader.until("step.started");
      speech.say("whole");
      speech.end();
      await turn.result;
      expect(await reader.until("turn.completed")).toMatchObject({ text: "whole" });
      expect(reader.events.filter(({ cursor }) => cursor === null)).toEqual([]);
      reader.leave();
    });

    it("streaming always: who comes to an answer that began without a reader has a snapshot of it, and the rest", async () => {
      const { spoken, runtime, agent } = await opened(stage(), { streaming: "always" });
      const turn = agent.executeTurn("go");
      const first = await spoken.next();
      expect(first.isStreamed).toBe(true);
      first.think("So.");
      first.say("Once ");
      const reader = new Reader(stage(), runtime);
      expect(await reader.until("text.snapshot")).toMatchObject({ step: 1, text: "Once ", reasoning: "So." });
      first.say("more");
      expect(await reader.until("text.delta")).toMatchObject({ offset: 5, text: "more" });
      reader.leave();
      first.end("look");
      const second = await spoken.next();
      second.say("The ");
      const back = new Reader(stage(), runtime, { client: reader.client });
      expect(await back.until("text.snapshot")).toMatchObject({ step: 1, text: "Once more" });
      expect(await back.until("text.snapshot")).toMatchObject({ step: 2, text: "The " });
      second.say("end.");
      second.end();
      await turn.result;
      await back.until("turn.completed");
      expect(back.client.faults).toEqual([]);
      expect(back.client.textOf("f", "f#1", 2)).toBe("The end.");
      back.leave();
    });

    it("what an attempt said that failed is shown no more once the next one has begun", async () => {
      const { spoken, runtime, agent } = await opened(stage());
      const reader = new Reader(stage(), runtime);
      await reader.until("lifecycle.changed");
      const turn = agent.executeTurn("go");
      const broken = await spoken.next();
      broken.say("I was abo");
      await reader.until("text.delta");
      broken.fail(new ModelError("cut", { retryable: true, mayHaveBeenSent: true }));
      await reader.until("step.restarted");
      const speech = await elapse(stage().clock, spoken.next(), 50);
      broken.say("ut to say");
      speech.say("Again.");
      expect(await reader.until("text.delta")).toMatchObject({ offset: 0, text: "Again.", attempt: 2 });
      speech.end();
      await turn.result;
      await reader.until("turn.completed");
      expect(reader.client.faults).toEqual([]);
      expect(reader.client.textOf("f", "f#1", 1)).toBe("Again.");
      reader.leave();
    });

    it("F29: a reader that does not read keeps a bounded number of pieces waiting, and misses nothing of the text", async () => {
      const { spoken, runtime, agent } = await opened(stage());
      const reader = new Reader(stage(), runtime, { isSlow: true });
      await reader.until("lifecycle.changed");
      const turn = agent.executeTurn("go");
      const speech = await spoken.next();
      for (let count = 0; count < 5_000; count += 1) speech.say(`${count} `);
      const text = Array.from({ length: 5_000 }, (_, count) => `${count} `).join("");
      await reader.until("text.snapshot");
      speech.end();
      await turn.result;
      await reader.until("turn.completed");
      expect(reader.events.length).toBeLessThan(1_100);
      expect(reader.client.faults).toEqual([]);
      expect(reader.client.textOf("f", "f#1", 1)).toBe(text);
      reader.leave();
    });
  },
  ["memory", "sqlite", "memory, restored"],
);

describeRuntimes(
  "live texts in another process",
  (stage) => {
    it("are seen there, a snapshot first for who comes in the middle", async () => {
      const { spoken, runtime, agent, definition } = await opened(stage());
      const elsewhere = await stage().open({ agents: [definition] });
      const early = new Reader(stage(), elsewhere);
      await early.until("lifecycle.changed");
      await heard(runtime);
      const turn = agent.executeTurn("go");
      const speech = await spoken.next();
      expect(speech.isStreamed).toBe(true);
      speech.think("Hm.");
      speech.say("Far ");
      speech.say("away ");
      expect(await early.until("text.delta")).toMatchObject({ offset: 0, step: 1, attempt: 1, cursor: null });
      const late = new Reader(stage(), await stage().open({ agents: [definition] }));
      expect(await late.until("text.snapshot")).toMatchObject({ text: "Far away ", reasoning: "Hm.", offset: 9 });
      speech.say("and ");
      speech.say("long ago");
      await late.until("text.delta");
      speech.end("look");
      const second = await spoken.next();
      second.say("The end.");
      second.end();
      await turn.result;
      for (const reader of [early, late]) {
        await reader.until("turn.completed");
        expect(reader.client.faults).toEqual([]);
        expect(reader.client.textOf("f", "f#1", 1)).toBe("Far away and long ago");
        expect(reader.client.textOf("f", "f#1", 2)).toBe("The end.");
        expect(reader.client.thought.get("f f#1 1")).toBe("Hm.");
        reader.leave();
      }
    });

    it("streaming always: an answer that began without a reader anywhere is seen there too", async () => {
      const { spoken, agent, definition } = await opened(stage(), { streaming: "always" });
      const turn = agent.executeTurn("go");
      const speech = await spoken.next();
      expect(speech.isStreamed).toBe(true);
      speech.say("Far ");
      const reader = new Reader(stage(), await stage().open({ agents: [definition] }));
      expect(await reader.until("text.snapshot")).toMatchObject({ text: "Far ", offset: 4, step: 1, attempt: 1 });
      speech.say("away");
      expect(await reader.until("text.delta")).toMatchObject({ offset: 4 });
      speech.end();
      await turn.result;
      await reader.until("turn.completed");
      expect(reader.client.faults).toEqual([]);
      expect(reader.client.textOf("f", "f#1", 1)).toBe("Far away");
      reader.leave();
    });

    it("pieces are sent together, and progress of tools with them", async () => {
      const spoken = new SpokenModel();
      const dig = defineTool({
        name: "dig",
        description: "Digs.",
        parameters: z.object({}),
        effect: "none",
        execute: (_arguments, run) => {
          for (let depth = 1; depth <= 3; depth += 1) run.progress({ depth });
          return "deep";
        },
      });
      const definition = defineAgent({ name: "digger", model: spoken.model, tools: [dig] });
      const runtime = await stage().open({ agents: [definition] });
      const agent = await runtime.agent("digger", { agentId: "f" });
      await agent.start();
      const reader = new Reader(stage(), await stage().open({ agents: [definition] }));
      await reader.until("lifecycle.changed");
      await heard(runtime);
      const turn = agent.executeTurn("go");
      const speech = await spoken.next();
      for (let count = 0; count < 200; count += 1) speech.say("x");
      await reader.until("text.delta");
      speech.end("dig");
      (await spoken.next()).end();
      await turn.result;
      await reader.until("turn.completed");
      const deltas = reader.events.filter(({ type }) => type === "text.delta" || type === "text.snapshot");
      expect(deltas.length).toBeLessThan(10);
      const depths = reader.events.flatMap((event) => (event.type === "tool.progress" ? [event.update] : []));
      expect(depths).toEqual([{ depth: 1 }, { depth: 2 }, { depth: 3 }].slice(0, depths.length));
      expect(reader.client.faults).toEqual([]);
      expect(reader.client.textOf("f", "f#1", 1)).toBe("x".repeat(200));
      reader.leave();
    });

    it("an owner that was believed dead and speaks on is not heard", async () => {
      const { spoken, owner, agent, definition } = await opened(stage());
      const elsewhere = await stage().open({ agents: [definition] });
      const reader = new Reader(stage(), elsewhere);
      await reader.until("lifecycle.changed");
      await heard(owner.runtime);
      agent.executeTurn("go").result.catch(() => undefined);
      const old = await spoken.next();
      old.say("I am old");
      await reader.until("text.delta");
      owner.freeze();
      stage().expireLeases();
      const next = await stage().open({ agents: [definition] });
      await heard(next);
      expect(await next.recover()).toEqual(["f"]);
      await reader.until("step.restarted");
      const speech = await elapse(stage().clock, spoken.next(), 50);
      old.say(", and still here");
      speech.say("I am new");
      expect(await reader.until("text.delta")).toMatchObject({ attempt: 2, offset: 0, text: "I am new" });
      const late = new Reader(stage(), elsewhere);
      expect(await late.until("text.snapshot")).toMatchObject({ attempt: 2, text: "I am new" });
      old.say(", I say");
      speech.end();
      for (const one of [reader, late]) {
        expect(await one.until("turn.completed")).toMatchObject({ text: "I am new" });
        expect(one.client.faults).toEqual([]);
        expect(one.client.textOf("f", "f#1", 1)).toBe("I am new");
        one.leave();
      }
      owner.thaw();
    });

    it("the stream of a turn goes on when another process takes its agent over", async () => {
      const { spoken, owner, agent, definition } = await opened(stage());
      const client = new TextClient();
      const turn = agent.executeTurn("go");
      const reading = (async () => {
        for await (const event of turn) client.take(event);
      })();
      const old = await spoken.next();
      old.say("Old");
      owner.freeze();
      stage().expireLeases();
      const next = await stage().open({ agents: [definition] });
      await next.recover();
      const speech = await elapse(stage().clock, spoken.next(), 50);
      speech.say("New");
      speech.end();
      owner.thaw();
      // Only now it finds out that it has lost its agent.
      old.end();
      await elapse(stage().clock, reading, 200);
      expect(client.durable.at(-1)).toMatchObject({ type: "turn.completed", text: "New" });
      expect(client.durable.map(({ type }) => type)).toContain("step.restarted");
    });
  },
  ["memory", "redis"],
);
