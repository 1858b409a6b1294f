import { expect, test, vi } from "vitest";
import { z } from "zod";
import { type Agent, type AgentOptions, defineAgent, defineTool, type Hooks, type Message } from "../../src/index.ts";
import { type ScriptedModel, scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling } from "../support/turn-probes.ts";

const lookup = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({}),
  effect: "none",
  execute: () => "seen",
});

const extra = { role: "user", content: "slipped in" } as Message;

/** Removes the read-only type, as JavaScript or a cast would. */
function open(messages: readonly Message[]): Message[] {
  return messages as Message[];
}

/** Looks the method up by name: the linter suggests alternatives to direct calls. */
function method(messages: Message[], name: "reverse" | "fill"): (...given: readonly unknown[]) => unknown {
  return (messages as Record<typeof name, (...given: readonly unknown[]) => unknown>)[name].bind(messages);
}

const listChanges = {
  push: (messages) => open(messages).push(extra),
  pop: (messages) => open(messages).pop(),
  shift: (messages) => open(messages).shift(),
  unshift: (messages) => open(messages).unshift(extra),
  splice: (messages) => open(messages).splice(0, 1),
  reverse: (messages) => method(open(messages), "reverse")(),
  sort: (messages) => open(messages).sort(() => 1),
  fill: (messages) => method(open(messages), "fill")(extra),
  copyWithin: (messages) => open(messages).copyWithin(0, 1),
} satisfies Record<string, (messages: readonly Message[]) => unknown>;

const memberChanges = {
  "a field of a message": ([message]) => Object.assign(message ?? {}, { content: "changed" }),
  "a member of the list": (messages) => (open(messages)[0] = extra),
  "the length": (messages) => (open(messages).length = 0),
  "a deleted field": ([message]) => delete (message as { content?: unknown }).content,
  "a prototype": ([message]) => Object.setPrototypeOf(message, { content: "changed" }) as unknown,
  "a definition": ([message]) => Object.defineProperty(message, "content", { value: "changed" }),
  "a new field": ([message]) => Object.assign(message ?? {}, { note: "changed" }),
} satisfies Record<string, (messages: readonly Message[]) => unknown>;

/** Applies the change in the first turn only. */
function once(name: keyof Hooks, change: (messages: readonly Message[]) => unknown): Hooks {
  return {
    [name]: (draft: { readonly messages: readonly Message[] }, { turnId }: { readonly turnId: string }) => {
      if (turnId === "desk#1") change(draft.messages);
    },
  };
}

const fail = (): never => {
  throw new Error("a watcher failed");
};
/** As in code that is not type-checked: an asynchronous function where a synchronous one is expected. */
const failLater: () => unknown = async () => await Promise.reject(new Error("a watcher failed later"));

const hooksWithMessages = [
  "afterUserInput",
  "beforeLlm",
  "afterLlm",
  "beforeTools",
  "afterTools",
  "onComplete",
] as const;

describeRuntimes(
  "changes by a hook that are refused",
  (stage) => {
    async function started(options: Partial<AgentOptions>): Promise<{ agent: Agent; model: ScriptedModel }> {
      const model = scriptedModel(({ messages }) => (messages.at(-1)?.content === "first" ? calling("look") : "done"));
      const desk = defineAgent({ tools: [lookup], ...options, name: "desk", model });
      const runtime = await stage().open({ agents: [desk] });
      const agent = await runtime.agent("desk", { agentId: "desk" });
      await agent.start();
      return { agent, model };
    }

    test.each(hooksWithMessages)(
      "%s: its turn fails with an error that names the right method, and the next turn works",
      async (name) => {
        const { agent, model } = await started({ hooks: once(name, listChanges.push) });
        const first = await agent.executeTurn("first").result;
        expect(first).toMatchObject({ status: "failed", error: { code: "invalid_input" } });
        expect(first.error?.message).toContain(
          "push() cannot be used here: the messages of a conversation are read-only",
        );
        expect(first.error?.message).toContain(
          "draft.add({ role, content }), draft.edit(id, content) or draft.remove(id)",
        );
        expect(await agent.executeTurn("second").result).toMatchObject({ status: "completed", text: "done" });
        const sent = model.calls.at(-1)?.messages.map(({ content }) => content);
        expect(sent).toEqual((await agent.getMessages()).slice(0, -1).map(({ content }) => content));
        expect(sent).not.toContain("slipped in");
      },
    );

    test.each(Object.entries(listChanges))("%s()", async (method, change) => {
      const { agent } = await started({ hooks: once("beforeLlm", change) });
      const { error } = await agent.executeTurn("first").result;
      expect(error?.message).toContain(`${method}() cannot be used here`);
    });

    test.each(Object.entries(memberChanges))("%s", async (_what, change) => {
      const { agent } = await started({ hooks: once("afterLlm", change) });
      const { error } = await agent.executeTurn("first").result;
      expect(error).toMatchObject({ code: "TypeError" });
      expect(error?.message).toContain("Values that the runtime passes to your code are read-only: change a copy");
      expect(error?.message).toContain("draft.edit(id, …)");
      expect(await agent.executeTurn("second").result).toMatchObject({ status: "completed" });
    });

    test("a history compiler that sorts its input fails the turn with an error that suggests a copy", async () => {
      const history = {
        name: "sorting",
        internalTools: false,
        compile: ({ history: messages }: { readonly history: readonly Message[] }) => open(messages).sort(() => 1),
      };
      const { agent } = await started({ history });
      const { error } = await agent.executeTurn("first").result;
      expect(error?.message).toContain("sort() cannot be used here");
      expect(error?.message).toContain("anywhere else change a copy, for instance [...messages]");
    });
  },
  ["memory", "sqlite"],
);

describeRuntimes(
  "the list of messages passed to a hook",
  (stage) => {
    test("is one object until a message is added, and behaves as an array", async () => {
      const lists = new Set<readonly Message[]>();
      const note = ({ messages }: { readonly messages: readonly Message[] }): void => void lists.add(messages);
      const desk = defineAgent({
        name: "desk",
        model: scriptedModel("done"),
        hooks: { afterUserInput: [note, note, note], beforeLlm: [note, note], afterLlm: [note, note, note] },
      });
      const runtime = await stage().open({ agents: [desk] });
      const agent = await runtime.agent("desk", { agentId: "desk" });
      await agent.start();
      await agent.executeTurn("first").result;
      expect(lists.size).toBe(2);
      const [first = [], second = []] = lists;
      const plain = second.map((message) => ({ ...message }));
      expect(Array.isArray(second) && Object.getPrototypeOf(second) === Array.prototype).toBe(true);
      expect(second).toEqual(plain);
      expect(second).toStrictEqual(plain);
      expect(structuredClone(second)).toEqual(plain);
      expect(JSON.parse(JSON.stringify(second))).toEqual(plain);
      expect(second.toReversed().at(-1)).toEqual(first[0]);
      expect(second.toSorted(() => -1)).toHaveLength(2);
      expect(second.filter(() => true).push(extra)).toBe(3);
    });
  },
  ["memory"],
);

describeRuntimes(
  "observers",
  (stage) => {
    test("that throw do not affect other code and are reported once", async () => {
      const warned = vi.spyOn(process, "emitWarning").mockReturnValue();
      const desk = defineAgent({ name: "desk", model: scriptedModel("done") });
      const runtime = await stage().open({ agents: [desk], onInspect: fail });
      const seen: string[] = [];
      runtime.subscribe(fail);
      runtime.subscribe({ next: failLater });
      runtime.overview.subscribe(fail);
      runtime.subscribe(({ type }) => void seen.push(type));
      const agent = await runtime.agent("desk", { agentId: "desk" });
      await agent.start();
      const turn = agent.executeTurn("first");
      turn.subscribe(fail);
      turn.subscribe({ next: failLater, complete: fail });
      const completed = Promise.withResolvers<void>();
      turn.subscribe({ complete: completed.resolve });
      expect(await turn.result).toMatchObject({ status: "completed", text: "done" });
      await completed.promise;
      expect(await agent.executeTurn("second").result).toMatchObject({ status: "completed" });
      expect(seen.filter((type) => type === "turn.completed")).toHaveLength(2);
      expect(runtime.overview.getSnapshot().context.agents["desk"]).toMatchObject({ turns: 2, status: "ready" });
      const texts = warned.mock.calls.map(([text]) => String(text));
      expect(new Set(texts.map((text) => text.split(" failed;")[0]))).toEqual(
        new Set([
          "onInspect",
          "an observer of runtime.subscribe()",
          "an observer of runtime.overview",
          "an observer of turn.subscribe()",
        ]),
      );
      expect(texts).toHaveLength(7);
      warned.mockRestore();
    });
  },
  ["memory"],
);
