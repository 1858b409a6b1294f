import { expect, it } from "vitest";
import { defineAgent, defineTool } from "../../src/index.ts";
import { elapse } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { SpokenModel } from "../support/spoken-model.ts";
import { TextClient } from "../support/text-client.ts";
import { Reader, heard, openedSpeaker } from "../support/text-reader.ts";
import { z } from "zod";

describeRuntimes(
  "live texts in another process",
  (stage) => {
    it("reach readers there; a reader that joins mid-answer gets a snapshot first", async () => {
      const { spoken, runtime, agent, definition } = await openedSpeaker(stage());
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

    it("streaming always: an answer that began without any reader is visible there too", async () => {
      const { spoken, agent, definition } = await openedSpeaker(stage(), { streaming: "always" });
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

    it("pieces are sent together with the progress of tools", async () => {
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

    it("text of an owner that was believed dead is dropped", async () => {
      const { spoken, owner, agent, definition } = await openedSpeaker(stage());
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

    it("the stream of a turn continues when another process takes over its agent", async () => {
      const { spoken, owner, agent, definition } = await openedSpeaker(stage());
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
      // Only now does the old owner notice that it has lost its agent.
      old.end();
      await elapse(stage().clock, reading, 200);
      expect(client.durable.at(-1)).toMatchObject({ type: "turn.completed", text: "New" });
      expect(client.durable.map(({ type }) => type)).toContain("step.restarted");
    });
  },
  ["memory", "redis"],
);
