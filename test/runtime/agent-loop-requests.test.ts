import { expect, it } from "vitest";
import { askUser, createAgent, createAgentLoop, defineAgent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { calling } from "../support/turn-probes.ts";

const script = [calling({ name: "ask_user", arguments: { question: "Which one?" } }), "Thanks."];

it("L7: a turn of the stateless loop waits for an answer and continues with it", async () => {
  const definition = defineAgent({ name: "desk", model: scriptedModel(script), tools: [askUser()] });
  const turn = createAgentLoop(definition).executeTurn([{ role: "user", content: "go" }]);
  const rest = await turn.settled;
  if (rest.status !== "waiting" || rest.reason !== "request")
    throw new Error(`expected a wait for a request, not ${rest.status}`);
  expect(rest.requests.map(({ kind, prompt }) => [kind, prompt])).toEqual([["question", "Which one?"]]);
  const [request] = rest.requests;
  await turn.decide(request?.requestId ?? "", { verdict: "answered", result: "the red one" });
  const { text, messages } = await turn.result;
  expect(text).toBe("Thanks.");
  expect(messages.map(({ role, content }) => [role, content])).toEqual([
    ["assistant", ""],
    ["tool", "the red one"],
    ["assistant", "Thanks."],
  ]);
});

it("the short form decides only requests of its own tree", async () => {
  const agent = await createAgent({ model: scriptedModel(script), tools: [askUser()] });
  await agent.start();
  const turn = agent.executeTurn("go");
  await turn.settled;
  const [request] = await agent.requests();
  await expect(agent.decide("other#1:1:0:1", { verdict: "answered", result: "x" })).rejects.toMatchObject({
    code: "not_found",
  });
  await agent.decide(request?.requestId ?? "", { verdict: "answered", result: "the blue one" });
  expect((await turn.result).text).toBe("Thanks.");
  await agent.runtime.shutdown();
});
