// Repeated requests for responses, by the client itself or by a person.
import OpenAI from "openai";
import type { ResponseCreateParamsNonStreaming } from "openai/resources/responses/responses";
import { expect, test } from "vitest";
import { tokens } from "../served.ts";
import { refusal, responsesServed } from "./responses-served.ts";

test("the same key is the same response; another body under it is refused", async () => {
  const { client, runtime } = await responsesServed();
  const headers = { "idempotency-key": "one" };
  const ask = (input: string, more: object = {}) =>
    client.responses.create({ model: "desk", input, ...more }, { headers });
  const [one, again] = [await ask("a"), await ask("a")];
  expect(again).toEqual(one);
  expect((await refusal(ask("b")))[0]).toBe(422);
  const previous = { previous_response_id: one.id };
  const next = (input: string, key: string) =>
    client.responses.create({ ...previous, input }, { headers: { "idempotency-key": key } });
  const second = await next("b", "two");
  const third = await next("c", "three");
  expect([second.output_text, third.output_text]).toEqual(["2: b", "2: c"]);
  expect([await next("b", "two"), await next("c", "three")]).toEqual([second, third]);
  expect((await refusal(next("d", "two")))[0]).toBe(422);
  const question = await client.responses.create({ model: "desk", conversation: "q", input: "ask" });
  const tell = () =>
    client.responses.create(
      { previous_response_id: question.id, input: "Ann" },
      { headers: { "idempotency-key": "four" } },
    );
  const told = await tell();
  expect([told.output_text, await tell()]).toEqual(["so: Ann", told]);
  expect(await runtime.list({ rootsOnly: true })).toHaveLength(3);
});

test("an automatic retry of the client is the same response, a person's repetition is another one", async () => {
  const { client } = await responsesServed();
  const ask = (body: ResponseCreateParamsNonStreaming, count: number) =>
    client.responses.create(body, { headers: { "x-stainless-retry-count": String(count) } });
  const fresh = { model: "desk", input: "a" };
  const first = await ask(fresh, 0);
  const second = await ask(fresh, 0);
  expect(second.id).not.toBe(first.id);
  expect([first.id, second.id]).toContain((await ask(fresh, 1)).id);
  const follow = { previous_response_id: first.id, input: "b" };
  const next = await ask(follow, 0);
  expect(await ask(follow, 1)).toEqual(next);
  const question = await client.responses.create({ model: "desk", input: "ask" });
  const answer = { previous_response_id: question.id, input: "Ann" };
  expect(await ask(answer, 0).then(({ id }) => id)).toBe((await ask(answer, 2)).id);
});

test("an answer that was lost is found by the client's own retry", async () => {
  const { server, runtime } = await responsesServed();
  let count = 0;
  const ask = async (...given: ConstructorParameters<typeof Request>) => {
    const response = await server.fetch(new Request(...given));
    count += 1;
    if (count % 2 === 0) return response;
    await response.text();
    throw new TypeError("the connection was lost");
  };
  const client = new OpenAI({
    apiKey: tokens.ann,
    baseURL: "http://127.0.0.1/v1",
    maxRetries: 1,
    fetch: ask as typeof fetch,
  });
  const first = await client.responses.create({ model: "desk", input: "a" });
  const second = await client.responses.create({ previous_response_id: first.id, input: "b" });
  expect([first.output_text, second.output_text]).toEqual(["1: a", "2: b"]);
  expect((await runtime.turns()).length).toBe(2);
});

test("of concurrent equal requests with one key one begins a response, and all receive it", async () => {
  const { client, runtime } = await responsesServed();
  const headers = { "idempotency-key": "one" };
  const ask = (body: ResponseCreateParamsNonStreaming) => client.responses.create(body, { headers });
  const fresh = await Promise.all([1, 2, 3].map(() => ask({ model: "desk", input: "a" })));
  const [first] = fresh;
  expect(fresh).toEqual([first, first, first]);
  const again = { "idempotency-key": "two" };
  const follow = { previous_response_id: first?.id ?? "", input: "b" };
  const next = await Promise.all([1, 2, 3].map(() => client.responses.create(follow, { headers: again })));
  expect(next.map(({ id, output_text: text }) => [id, text])).toEqual([1, 2, 3].map(() => [next[0]?.id, "2: b"]));
  expect((await runtime.turns()).length).toBe(2);
});

test("a conversation continues over chat completions, and back", async () => {
  const { client } = await responsesServed();
  const first = await client.responses.create({ model: "desk", conversation: "trip", input: "a" });
  const headers = { "X-Troupe-Conversation": "trip" };
  const chat = await client.chat.completions.create(
    { model: "desk", messages: [{ role: "user", content: "b" }] },
    { headers },
  );
  const third = await client.responses.create({ model: "desk", conversation: "trip", input: "c" });
  const texts = [first.output_text, chat.choices[0]?.message.content, third.output_text];
  expect(texts).toEqual(["1: a", "2: b", "3: c"]);
});
