import { expect, it } from "vitest";
import { createAgentLoop, defineAgent, InvalidInputError, type LoopMessage } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";

it("L1: each turn of one conversation has its own id and returns the messages it added", async () => {
  const model = scriptedModel(({ messages }) => `answer ${messages.length}`);
  const loop = createAgentLoop(defineAgent({ name: "talker", model }));
  let conversation: LoopMessage[] = [];
  const turnIds: string[] = [];
  for (const content of ["one", "two", "three"]) {
    conversation = [...conversation, { role: "user", content }];
    const { messages, turnId } = await loop.executeTurn(conversation, { agentId: "talk" }).result;
    conversation = [...conversation, ...messages];
    turnIds.push(turnId);
  }
  expect(turnIds).toEqual(["talk#1", "talk#2", "talk#3"]);
  expect(conversation.map(({ content }) => content)).toEqual([
    "one",
    "answer 1",
    "two",
    "answer 3",
    "three",
    "answer 5",
  ]);
  const ids = conversation.flatMap(({ id }) => (id === undefined ? [] : [id]));
  expect(new Set(ids).size).toBe(3);
});

it("L1: two messages with the same id are refused", async () => {
  const loop = createAgentLoop(defineAgent({ name: "talker", model: scriptedModel("fine") }));
  const turn = loop.executeTurn([
    { id: "m", role: "user", content: "one" },
    { id: "m", role: "user", content: "two" },
  ]);
  await expect(turn.result).rejects.toThrow(InvalidInputError);
  await expect(turn.result).rejects.toThrow('messages.1.id: "m" is already the id of an earlier message');
});
