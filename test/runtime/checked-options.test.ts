import { expect, it } from "vitest";
import {
  type Agent,
  defineAgent,
  InvalidInputError,
  NotFoundError,
  type Runtime,
  type Stores,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { rows } from "../support/full.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { anyValues, classicValues, hostile, isTaken } from "../support/wrong-values.ts";

async function started(runtime: Runtime, agentId = "a"): Promise<Agent> {
  const agent = await runtime.agent("desk", { agentId });
  await agent.start();
  return agent;
}

/** Ignored: the time at which a process releases an idle agent differs between runs. */
const withoutHolder = (name: string, value: unknown): unknown => (name === "isHeld" ? undefined : value);

/** In the quick run a quarter of the values, the empty object among them. */
const values = (): readonly unknown[] =>
  rows([...classicValues(), ...anyValues(20)], (_value, index) => index % 4 === 1);

describeRuntimes(
  "values that callers pass",
  (stage) => {
    const child = defineAgent({ name: "child", model: scriptedModel("done") });
    const desk = (): Promise<Runtime> =>
      stage().open({ agents: [defineAgent({ name: "desk", model: scriptedModel("fine") }), child] });

    const onlookers = new WeakMap<object, Stores>();

    /** Everything stored for the agent's tree. */
    async function stored(): Promise<unknown> {
      const stores = onlookers.get(stage()) ?? stage().look();
      onlookers.set(stage(), stores);
      return JSON.parse(JSON.stringify(await stores.exportTree("default", "a"), withoutHolder)) as unknown;
    }

    /** Passes every wrong value. Returns the options that accepted one; a refused call must not change the stores. */
    async function walk(names: readonly string[], call: (options: object) => unknown): Promise<string[]> {
      const taken: string[] = [];
      let before = await stored();
      for (const name of names) {
        for (const value of values()) {
          const wasTaken = await isTaken(name, () => call({ [name]: value }));
          const after = await stored();
          if (wasTaken) taken.push(name);
          expect(wasTaken ? before : after).toEqual(before);
          before = after;
        }
      }
      return [...new Set(taken)];
    }

    it("a turn accepts no wrong option", async () => {
      const runtime = await desk();
      const agent = await started(runtime);
      const names = ["auth", "signal", "budget", "ifBusy", "trace", "settings"];
      // An empty budget is a valid one, and so are empty settings.
      const taken = await walk(names, (options) => agent.executeTurn("x", options).result);
      expect(taken).toEqual(["budget", "settings"]);
      const wrong = { signal: new AbortController() as unknown as AbortSignal };
      await expect(agent.executeTurn("x", wrong).result).rejects.toThrow(
        "executeTurn(): signal is an object of class AbortController; expected an AbortSignal",
      );
      for (const options of [null, 5, "x", [], new Date(0), hostile()] as unknown as object[]) {
        await expect(agent.executeTurn("x", options).id).rejects.toThrow(InvalidInputError);
      }
      expect((await agent.executeTurn("and now?").result).status).toBe("completed");
    });

    it.each([
      [{ ifBuzy: "queue" }, 'executeTurn() has no option "ifBuzy": did you mean ifBusy?'],
      [{ maxSteps: 3 }, "did you mean budget: { maxSteps }?"],
      [{ ifBusy: "never" }, 'ifBusy is the text "never"; expected "refuse", "queue", "supersede" or "steer"'],
      [{ temperature: 1 }, "did you mean settings: { temperature }?"],
      [{ settings: { temprature: 1 } }, "did you mean temperature?"],
      [{ settings: { temperature: -1 } }, "settings.temperature is -1; expected a number of at least 0"],
      [{ settings: { maxOutputTokens: 0 } }, "settings.maxOutputTokens is 0; expected a whole number of at least 1"],
      [{ settings: { reasoningEffort: "hard" } }, 'settings.reasoningEffort is the text "hard"; expected "none", '],
      [{ settings: { stopSequences: "END" } }, 'settings.stopSequences is the text "END"; expected a list of texts'],
      [
        { settings: { stopSequences: ["END", ""] } },
        'settings.stopSequences[1] is the text ""; expected a text of 1 to',
      ],
      [{ settings: { stopSequences: Array.from({ length: 65 }, () => "a") } }, "has 65 texts; expected at most 64"],
      [{ settings: { toolChoice: "always" } }, 'settings.toolChoice is the text "always"; expected "auto", "none"'],
      [{ settings: { toolChoice: { tool: "look" } } }, 'there is no tool "look"; there are no tools'],
      [{ settings: { providerOptions: { openai: 5 } } }, 'settings.providerOptions["openai"] is 5; expected an object'],
      [{ settings: { providerOptions: [] } }, "expected an object of options by the names of providers"],
      [{ auth: "me" }, "auth expects its options as an object { actorId, credentials }, not a text"],
      [{ auth: { actorId: 7 } }, "auth.actorId is 7; expected a non-empty text"],
      [{ auth: { userId: "anna", actorId: "anna" } }, "did you mean actorId?"],
    ])("a turn with %j is refused", async (options, told) => {
      const runtime = await desk();
      const agent = await started(runtime);
      const before = await stored();
      await expect(agent.executeTurn("x", options as object).result).rejects.toThrow(told);
      expect(await stored()).toEqual(before);
    });

    it("a signal that cannot be listened to is refused before the turn is opened", async () => {
      const agent = await started(await desk());
      const broken = {
        aborted: false,
        addEventListener: () => {
          throw new Error("not today");
        },
        removeEventListener: () => undefined,
      } as unknown as AbortSignal;
      await expect(agent.executeTurn("x", { signal: broken }).result).rejects.toThrow("not today");
      expect((await agent.executeTurn("x").result).turnId).toBe("a#1");
      for (const reason of [Object.create(null) as object, hostile(), Symbol("s"), 5]) {
        const stopped = await agent.executeTurn("x", { signal: AbortSignal.abort(reason) }).result;
        expect(stopped.status).toBe("stopped");
      }
    });

    it("later changes by the caller do not affect the parts of an input", async () => {
      const model = scriptedModel("seen");
      const runtime = await stage().open({ agents: [defineAgent({ name: "desk", model })] });
      const agent = await started(runtime);
      const input = [{ type: "text" as const, text: "as it was" }];
      const turn = agent.executeTurn(input);
      (input[0] as { text: string }).text = "something else";
      input.push({ type: "text", text: "more" });
      await turn.result;
      expect(model.calls[0]?.messages[0]?.content).toEqual([{ type: "text", text: "as it was" }]);
    });

    it("no agent is created with a wrong option", async () => {
      const runtime = await desk();
      await started(runtime);
      let before = await runtime.list();
      const names = ["agentId", "sessionId", "ownerId", "metadata", "budget", "autoSave"];
      for (const name of names) {
        for (const value of values()) {
          const wasTaken = await isTaken(name, () => runtime.agent("desk", { [name]: value }));
          const after = await runtime.list();
          expect(wasTaken ? before : after).toEqual(before);
          before = after;
        }
      }
      // Agents with accepted options can be read and continue.
      for (const { agentId } of await runtime.list({ limit: 1_000 })) {
        const agent = await runtime.find(agentId);
        await agent.start();
        expect((await agent.executeTurn("hello").result).status).toBe("completed");
      }
    });

    it.each([
      ["null", null],
      ["a list", []],
      ["a text", "x"],
      ["a bigint", { a: 1n }],
      ["a date", { a: new Date(0) }],
      ["3,000 levels", JSON.parse(`${'{"a":'.repeat(3_000)}1${"}".repeat(3_000)}`)],
    ])("metadata that is %s is refused, and the error names its position", async (_what, metadata) => {
      const runtime = await desk();
      const making = runtime.agent("desk", { agentId: "m", metadata: metadata as never });
      await expect(making).rejects.toThrow(/runtime\.agent\(\): metadata/);
      await expect(runtime.find("m")).rejects.toThrow(NotFoundError);
    });

    it("later changes by the caller do not affect the agent's metadata", async () => {
      const runtime = await desk();
      const metadata = { project: { name: "one" } };
      const agent = await runtime.agent("desk", { agentId: "m", metadata });
      metadata.project.name = "two";
      expect(agent.state.metadata).toEqual({ project: { name: "one" } });
      expect((await runtime.find("m")).state.metadata).toEqual({ project: { name: "one" } });
    });

    it("all other methods reject invalid arguments and change nothing", async () => {
      const runtime = await desk();
      const agent = await started(runtime);
      await agent.executeTurn("hello").result;
      const before = await stored();
      const given = values().filter((value) => typeof value !== "string" && typeof value !== "function") as never[];
      for (const value of given) {
        await expect(agent.abort(value), "abort").rejects.toThrow(InvalidInputError);
        await expect(runtime.find(value), "find").rejects.toThrow(InvalidInputError);
        await expect(runtime.agent(value), "agent").rejects.toThrow(InvalidInputError);
        await expect(runtime.decide(value, { verdict: "approved" }), "decide").rejects.toThrow(InvalidInputError);
        await expect(runtime.accounts(value), "accounts").rejects.toThrow(InvalidInputError);
        await expect(runtime.projected(value), "projected").rejects.toThrow(InvalidInputError);
        await expect(agent.getArtifact(value), "getArtifact").rejects.toThrow(InvalidInputError);
        await expect(agent.spawn(value, "x", { key: "k" }), "spawn").rejects.toThrow(InvalidInputError);
        await expect(agent.spawn(child, value, { key: "k" }), "its input").rejects.toThrow(InvalidInputError);
        await expect(agent.getTrace(value === undefined ? (null as never) : value)).rejects.toThrow(InvalidInputError);
      }
      const names = ["limit", "order", "after", "rootAgentId", "sessionId", "ownerId", "rootsOnly", "status", "turnId"];
      await walk(names.slice(0, 7), (options) => runtime.list(options));
      await walk([...names.slice(0, 1), ...names.slice(2, 4), "status", "turnId"], (options) =>
        runtime.requests(options),
      );
      await walk(["maxMessages", "withoutTrace"], (options) => agent.getMessages(options));
      expect(await stored()).toEqual(before);
      await walk(["key", "budget"], async (options) => {
        const { turn } = await agent.spawn(child, "x", { key: "k", ...options });
        await turn.result;
      });
      for (const value of given) {
        await isTaken("now", () => agent.pause({ now: value }).then(() => agent.resume()));
        await isTaken("auth", () => agent.resume({ auth: value }));
      }
      await walk(["by", "reason", "argumentsHash"], (options) =>
        runtime.decide("a#1:1:0:1", { verdict: "rejected", ...options }).catch((error: unknown) => {
          if (!(error instanceof NotFoundError)) throw error;
        }),
      );
      await walk(["timeoutMs"], (options) => runtime.health(options));
      await expect(runtime.list({ tenant: "other" } as object)).rejects.toThrow(
        'runtime.list() has no option "tenant"',
      );
      expect(() => runtime.subscribe(5 as never)).toThrow(InvalidInputError);
      expect(() => runtime.subscribe({ next: 5 } as never)).toThrow(InvalidInputError);
      expect(() => runtime.subscribe(() => undefined, { streams: 1 as never })).toThrow(InvalidInputError);
      expect(() => runtime.subscribe(() => undefined, { stream: false } as object)).toThrow(InvalidInputError);
      expect((await agent.executeTurn("again").result).status).toBe("completed");
    });
  },
  ["memory", "sqlite"],
);
