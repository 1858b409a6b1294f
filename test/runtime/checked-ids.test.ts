import { expect, it } from "vitest";
import { defineAgent, InvalidInputError, NotFoundError, type Turn } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { createGate } from "../support/turn-probes.ts";

/** Every method that reads or ends a turn. */
async function answers(turn: Turn): Promise<unknown[]> {
  const iterated = async (): Promise<unknown> => {
    for await (const event of turn) return event;
    return undefined;
  };
  const told = Promise.withResolvers<unknown>();
  turn.subscribe({ error: (error) => told.resolve(error), next: (event) => told.resolve(event) });
  const asked = [turn.id, turn.result, turn.settled, iterated(), turn.abort()];
  const failed = asked.map((one) => one.catch((error: unknown) => error));
  return await Promise.all([...failed, told.promise]);
}

describeRuntimes(
  "ids of turns and trees",
  (stage) => {
    it("an id that does not name one of the agent's turns is refused at once", async () => {
      const runtime = await stage().open({ agents: [defineAgent({ name: "desk", model: scriptedModel("fine") })] });
      const [one, other] = [
        await runtime.agent("desk", { agentId: "one" }),
        await runtime.agent("desk", { agentId: "other" }),
      ];
      await other.start();
      await other.executeTurn("hello").result;
      for (const id of [
        "nonsense",
        "",
        "#",
        "one#",
        "one#0",
        "one#01",
        "one#1.5",
        "one#-1",
        "one#x",
        "one#1#1",
        7,
        null,
      ]) {
        expect(() => one.turn(id as string), String(id)).toThrow(InvalidInputError);
      }
      expect(() => one.turn("nobody#1")).toThrow('turn "nobody#1" belongs to agent "nobody", not to this agent');
      expect(() => one.turn("other#1")).toThrow(InvalidInputError);
      expect((await other.turn("other#1").result).text).toBe("fine");
    });

    it("every method of a turn that was never opened fails with NotFoundError", async () => {
      const runtime = await stage().open({ agents: [defineAgent({ name: "desk", model: scriptedModel("fine") })] });
      const agent = await runtime.agent("desk", { agentId: "one" });
      for (const error of await answers(agent.turn("one#1"))) expect(error).toBeInstanceOf(NotFoundError);
      await agent.start();
      await agent.executeTurn("hello").result;
      for (const error of await answers(agent.turn("one#2"))) expect(error).toBeInstanceOf(NotFoundError);
      await expect(agent.turn("one#2").result).rejects.toThrow('there is no turn "one#2": the last one is one#1');
    });

    it("a queued turn is found in every process", async () => {
      const gate = createGate<string>();
      const desk = (): ReturnType<typeof defineAgent> =>
        defineAgent({ name: "desk", model: scriptedModel((_request, { signal }) => gate.pass(signal)) });
      const runtime = await stage().open({ agents: [desk()] });
      const agent = await runtime.agent("desk", { agentId: "one" });
      await agent.start();
      const first = agent.executeTurn("first");
      await gate.reached();
      expect(await agent.executeTurn("second", { ifBusy: "queue" }).id).toBe("one#2");
      const onlooker = await stage().open({ agents: [desk()] });
      const there = await onlooker.find("one");
      expect(await there.turn("one#2").id).toBe("one#2");
      const results = [agent.turn("one#2").result, there.turn("one#2").result];
      gate.open("done");
      await first.result;
      await results[0];
      // Other processes notice it at their next heartbeat.
      stage().clock.advance(5_000);
      expect((await Promise.all(results)).map(({ text }) => text)).toEqual(["done", "done"]);
    });

    it("autoSave: false: turns of an unsaved tree are found, and so is the tree", async () => {
      const runtime = await stage().open({ agents: [defineAgent({ name: "desk", model: scriptedModel("fine") })] });
      const agent = await runtime.agent("desk", { agentId: "one", autoSave: false });
      await agent.start();
      await agent.executeTurn("hello").result;
      expect((await agent.turn("one#1").result).text).toBe("fine");
      for await (const event of runtime.follow("one")) {
        expect(event.rootAgentId).toBe("one");
        break;
      }
      await expect(agent.turn("one#2").result).rejects.toThrow(NotFoundError);
    });

    it("follow() of an unknown tree fails at the first event", async () => {
      const runtime = await stage().open({ agents: [defineAgent({ name: "desk", model: scriptedModel("fine") })] });
      const first = async (...given: Parameters<typeof runtime.follow>): Promise<unknown> => {
        for await (const event of runtime.follow(...given)) return event;
        return undefined;
      };
      await expect(first("nobody")).rejects.toThrow('there is no tree "nobody"');
      await expect(first("nobody")).rejects.toThrow(NotFoundError);
      await expect(first("")).rejects.toThrow(NotFoundError);
      await expect(first("root~1")).rejects.toThrow('whose events are in the tree "root"');
      await expect(first(7 as never)).rejects.toThrow(InvalidInputError);
      await runtime.agent("desk", { agentId: "one" });
      await expect(first("one", { after: 5 as never })).rejects.toThrow(InvalidInputError);
      await expect(first("one", { signal: new AbortController() as never })).rejects.toThrow(InvalidInputError);
      await expect(first("one", { cursor: "1.1.0" } as object)).rejects.toThrow("did you mean after?");
    });
  },
  ["memory", "sqlite"],
);
