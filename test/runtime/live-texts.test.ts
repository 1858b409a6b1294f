import { expect, it } from "vitest";
import { ModelError } from "../../src/index.ts";
import { elapse, loopTurns } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { Reader, openedSpeaker } from "../support/text-reader.ts";

describeRuntimes(
  "live texts in one process",
  (stage) => {
    it("a delta contains its position: the event before it, the step, the attempt and the offset", async () => {
      const { spoken, runtime, agent } = await openedSpeaker(stage());
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

    it("F28: a reader that joins mid-answer gets all of it once and then follows it", async () => {
      const { spoken, runtime, agent } = await openedSpeaker(stage());
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

    it("a call is shown while it is written: its name first, then its arguments, under the id of the later call", async () => {
      const { spoken, runtime, agent } = await openedSpeaker(stage());
      const early = new Reader(stage(), runtime);
      await early.until("lifecycle.changed");
      const turn = agent.executeTurn("go");
      const speech = await spoken.next();
      speech.call(0, "look");
      speech.call(0, "look", '{"at"');
      const written = { callId: "f#1:1:0", name: "look", index: 0, cursor: null, step: 1, attempt: 1 };
      expect(await early.until("call.delta")).toMatchObject({ ...written, offset: 0, text: "" });
      expect(await early.until("call.delta")).toMatchObject({ ...written, offset: 0, text: '{"at"' });
      const late = new Reader(stage(), runtime);
      const calls = [{ callId: "f#1:1:0", name: "look", index: 0, text: '{"at"' }];
      expect(await late.until("text.snapshot")).toMatchObject({ text: "", calls });
      speech.call(0, "look", ":1}");
      for (const reader of [early, late]) {
        expect(await reader.until("call.delta")).toMatchObject({ ...written, offset: 5, text: ":1}" });
      }
      speech.end("look");
      expect(await late.until("tool.started")).toMatchObject({ callId: "f#1:1:0", name: "look" });
      (await spoken.next()).end();
      await turn.result;
      for (const reader of [early, late]) {
        await reader.until("turn.completed");
        expect(reader.client.faults).toEqual([]);
        reader.leave();
      }
    });

    it("pieces of a call that an adapter reports wrongly are left out", async () => {
      const { spoken, runtime, agent } = await openedSpeaker(stage());
      const reader = new Reader(stage(), runtime);
      await reader.until("lifecycle.changed");
      const turn = agent.executeTurn("go");
      const speech = await spoken.next();
      speech.call(0, "look", "{");
      speech.call(-1, "look");
      speech.call(0.5, "look");
      speech.call(2_000, "look");
      speech.call(0, 7 as never);
      speech.call(1, "look");
      speech.call(1, "look");
      speech.call(1, "look", 7 as never);
      speech.end();
      await turn.result;
      await reader.until("turn.completed");
      const pieces = reader.events.filter(({ type }) => type === "call.delta");
      expect(pieces).toMatchObject([{ index: 1, name: "look", offset: 0, text: "" }]);
      reader.leave();
    });

    it("F28: a reader that leaves mid-answer and returns after it also gets the rest of an earlier step", async () => {
      const { spoken, runtime, agent } = await openedSpeaker(stage());
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

    it("an answer that began while no reader was connected is streamed to a reader that returns", async () => {
      const { spoken, runtime, agent } = await openedSpeaker(stage());
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

    it("without a reader the model returns one whole answer, and later readers see only its end", async () => {
      const { spoken, runtime, agent } = await openedSpeaker(stage());
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

    it("streaming always: a reader that joins an answer gets a snapshot and the rest", async () => {
      const { spoken, runtime, agent } = await openedSpeaker(stage(), { streaming: "always" });
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

    it("text of a failed attempt is dropped once the next attempt has begun", async () => {
      const { spoken, runtime, agent } = await openedSpeaker(stage());
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

    it("F29: a reader that does not read buffers a bounded number of pieces and misses no text", async () => {
      const { spoken, runtime, agent } = await openedSpeaker(stage());
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
