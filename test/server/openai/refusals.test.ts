// A refusal of the model, as clients of the surfaces see it.
import { defineAgent } from "troupe";
import { scriptedModel } from "troupe/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { agentSchema } from "../../../src/server/api/agent-json.ts";
import { turnSchema } from "../../../src/server/api/turn-json.ts";
import { clientOf } from "./official-client.ts";
import { deskServed } from "./openai-served.ts";

const refusing = (output?: z.ZodObject) =>
  defineAgent({
    name: "desk",
    model: scriptedModel({ text: "I will not help with that.", finishReason: "content_filter" }),
    ...(output === undefined ? {} : { output }),
  });

test.each([
  ["an agent that answers in text", refusing()],
  ["an agent with an output schema", refusing(z.object({ n: z.number() }))],
])("a chat completion of %s has the words and the finish reason", async (_agent, definition) => {
  const { server } = await deskServed({ agents: [definition] });
  const client = clientOf(server);
  const asked = { model: "desk", messages: [{ role: "user" as const, content: "Help." }] };
  const whole = await client.chat.completions.create(asked);
  expect(whole.choices).toMatchObject([
    { finish_reason: "content_filter", message: { content: "I will not help with that." } },
  ]);
  let text = "";
  const reasons: unknown[] = [];
  for await (const { choices } of await client.chat.completions.create({ ...asked, stream: true })) {
    text += choices[0]?.delta.content ?? "";
    if (choices[0]?.finish_reason) reasons.push(choices[0].finish_reason);
  }
  expect([text, ...reasons]).toEqual(["I will not help with that.", "content_filter"]);
});

test("a response is incomplete because of the content", async () => {
  const { server } = await deskServed({ agents: [refusing()] });
  const response = await clientOf(server).responses.create({ model: "desk", input: "Help." });
  expect(response).toMatchObject({
    status: "incomplete",
    incomplete_details: { reason: "content_filter" },
    output_text: "I will not help with that.",
  });
});

test("troupe's own API has the stop reason", async () => {
  const { ask } = await deskServed({ agents: [refusing()] });
  const post = (path: string, body: object) =>
    ask(path, { method: "POST", body, headers: { "content-type": "application/json", prefer: "wait=10" } });
  const { agentId } = agentSchema.parse(await (await post("/api/agents", { definition: "desk" })).json());
  const answer = await post(`/api/agents/${agentId}/turns`, { input: "Help." });
  expect(answer.ok).toBe(true);
  expect(turnSchema.parse(await answer.json())).toMatchObject({
    status: "stopped",
    result: { stopReason: "refusal", text: "I will not help with that." },
  });
});
