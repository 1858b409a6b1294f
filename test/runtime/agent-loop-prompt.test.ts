import { expect, it } from "vitest";
import { z } from "zod";
import { createAgentLoop, defineAgent, defineTool, InvalidInputError, type LoopMessage } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { calling } from "../support/turn-probes.ts";
import { anyValues, classicValues, isTaken } from "../support/wrong-values.ts";

it.each([
  [[{ role: "user", content: "the question" }], "the question"],
  [
    [
      { role: "user", content: "earlier" },
      { role: "assistant", content: "answered" },
      { role: "user", content: "first" },
      { role: "user", content: [{ type: "text", text: "second" }] },
    ],
    "first\nsecond",
  ],
  [
    [
      { role: "user", content: "earlier" },
      { role: "assistant", content: "answered" },
    ],
    "",
  ],
] as const)("L1: trailing user messages %j become the turn's prompt in every API", async (messages, prompt) => {
  const seen: Record<string, string> = {};
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: z.object({}),
    execute: (_args, run) => {
      seen["run"] = run.prompt;
      seen["trace"] = run.trace.flatMap((entry) => (entry.type === "user_input" ? [entry.prompt] : [])).join();
      return "";
    },
  });
  const model = scriptedModel(({ messages: sent }) => (sent.at(-1)?.role === "tool" ? "done" : calling("look")));
  const hooks = { afterUserInput: ({ input }: { input: string }) => void (seen["hook"] = input) };
  const turn = createAgentLoop(defineAgent({ name: "l", model, tools: [look], hooks })).executeTurn(
    messages as readonly LoopMessage[],
  );
  turn.subscribe((event) => {
    if (event.type === "turn.started") seen["event"] = event.prompt;
  });
  const { messages: added, status } = await turn.result;
  expect(status).toBe("completed");
  expect(seen).toEqual({ run: prompt, trace: prompt, hook: prompt, event: prompt });
  expect(added.map(({ role }) => role)).toEqual(["assistant", "tool", "assistant"]);
  expect(model.calls[0]?.messages).toHaveLength(messages.length);
});

it("L1: the loop accepts a value or the turn refuses it", async () => {
  const loop = createAgentLoop(defineAgent({ name: "l", model: scriptedModel("fine") }));
  const hello: LoopMessage[] = [{ role: "user", content: "hello" }];
  const outcomes: boolean[] = [];
  for (const value of [...classicValues(), ...anyValues(50)]) {
    outcomes.push(await isTaken("messages", () => loop.executeTurn(value as LoopMessage[]).result));
    outcomes.push(await isTaken("messages.0", () => loop.executeTurn([value as LoopMessage]).result));
    for (const name of ["contextId", "clock", "auth", "signal", "budget", "trace"]) {
      outcomes.push(await isTaken(name, () => loop.executeTurn(hello, { [name]: value }).result));
    }
  }
  expect(outcomes).toContain(false);
  await expect(loop.executeTurn(hello, { ifBusy: "queue" } as object).result).rejects.toThrow(InvalidInputError);
  expect((await loop.executeTurn(hello).result).text).toBe("fine");
});
