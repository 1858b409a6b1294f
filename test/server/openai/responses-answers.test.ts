// Answers to a response's requests: approvals, questions, tools of the client.
import { memoryStores } from "troupe";
import { expect, test } from "vitest";
import { approving, openOf, refusal, responsesServed, shown } from "./responses-served.ts";

test("a rejected approval contains the reason; a message to a question is its answer", async () => {
  const { client, removed } = await responsesServed();
  const asked = await client.responses.create({ model: "desk", input: "remove" });
  const rejected = await client.responses.create(approving(asked, false, "not today"));
  expect(shown(rejected)).toEqual([
    expect.stringMatching(/^desk\.remove\(.*\) failed: .*not today/),
    expect.stringMatching(/^so: .*not today/),
  ]);
  expect([rejected.previous_response_id, removed]).toEqual([asked.id, []]);
  const { data } = await client.responses.inputItems.list(rejected.id);
  expect(data).toMatchObject([{ type: "mcp_approval_response", approve: false, reason: "not today" }]);
  const question = await client.responses.create({ model: "desk", input: "ask" });
  const answered = await client.responses.create({ previous_response_id: question.id, input: "Ann" });
  expect(answered.output_text).toBe("so: Ann");
  expect(await client.responses.retrieve(answered.id)).toEqual(answered);
});

test("requests stay unchanged when the turn has continued, and each response counts its own tokens", async () => {
  const { client, runtime } = await responsesServed();
  const asked = await client.responses.create({ model: "desk", input: "remove" });
  const done = await client.responses.create(approving(asked));
  expect(await client.responses.retrieve(asked.id)).toEqual(asked);
  expect(await client.responses.retrieve(done.id)).toEqual(done);
  const [agent] = await runtime.list();
  const { spent } = await (await runtime.find(agent?.agentId ?? "")).turn(`${agent?.agentId}#1`).result;
  expect((asked.usage?.input_tokens ?? 0) + (done.usage?.input_tokens ?? 0)).toBe(spent.tree.inputTokens);
  expect(await refusal(client.responses.create({ previous_response_id: asked.id, input: "and now?" }))).toEqual([
    400,
    "invalid_request",
    "previous_response_id",
  ]);
  expect((await client.responses.create({ previous_response_id: done.id, input: "go on" })).output_text).toBe(
    "2: go on",
  );
});

test("an answer that is overtaken by an equal one gets the same response", async () => {
  const stores = memoryStores();
  let afterReading: (() => Promise<void>) | undefined;
  const requestOf: typeof stores.request = async (...place) => {
    const found = await stores.request(...place);
    await afterReading?.();
    return found;
  };
  const overtaken = new Proxy(stores, {
    get: (target, name) => (name === "request" ? requestOf : (Reflect.get(target, name) as unknown)),
  });
  const { client, removed } = await responsesServed({ stores: overtaken });
  const asked = await client.responses.create({ model: "desk", input: "remove" });
  const approved: string[] = [];
  const approve = async () => {
    const { id } = await client.responses.create(approving(asked));
    approved.push(id);
  };
  afterReading = async () => {
    afterReading = undefined;
    await approve();
  };
  await approve();
  expect(new Set(approved).size).toBe(1);
  expect([approved.length, removed]).toEqual([2, ["a.txt"]]);
});

test("of two concurrent decisions the first counts, and an equal one gets the same response", async () => {
  const { client, removed } = await responsesServed();
  const asked = await client.responses.create({ model: "desk", input: "remove" });
  const settled = await Promise.allSettled(
    [true, false].map((approve) => client.responses.create(approving(asked, approve))),
  );
  expect(settled.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  const [winner] = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const isApproved = removed.length === 1;
  expect(settled[isApproved ? 0 : 1]?.status).toBe("fulfilled");
  for (const again of [
    client.responses.create(approving(asked, isApproved)),
    client.responses.retrieve(winner?.id ?? ""),
  ]) {
    expect(await again).toEqual(winner);
  }
  expect(await refusal(client.responses.create(approving(asked, !isApproved)))).toEqual([
    409,
    "request_conflict",
    null,
  ]);
  expect(removed).toHaveLength(isApproved ? 1 : 0);
});

test("all requests must be answered together, otherwise nothing is decided", async () => {
  const { client, removed, runtime } = await responsesServed();
  const asked = await client.responses.create({ model: "desk", input: "remove two" });
  const ids = asked.output.flatMap((item) => (item.type === "mcp_approval_request" ? [item.id] : []));
  expect(ids).toHaveLength(2);
  const answers = ids.map((id) => ({ type: "mcp_approval_response", approval_request_id: id, approve: true }) as const);
  const one = client.responses.create({ previous_response_id: asked.id, input: answers.slice(0, 1) });
  await expect(one).rejects.toThrow(ids[1]);
  expect([await runtime.requests({ status: "decided" }), removed]).toEqual([[], []]);
  const done = await client.responses.create({ input: answers });
  expect(shown(done).filter((line) => line.includes("completed"))).toHaveLength(2);
  expect(removed.toSorted()).toEqual(["a.txt", "b.txt"]);
  expect((await client.responses.create({ previous_response_id: asked.id, input: answers.slice(1) })).id).toBe(done.id);
});

test("a subagent's call is shown with its name and the approval requested for it", async () => {
  const { client, removed } = await responsesServed();
  const asked = await client.responses.create({ model: "desk", input: "delegate remove" });
  expect(shown(asked)).toEqual([
    expect.stringMatching(/^desk\.reader\(.*\) incomplete: $/),
    'may reader remove({"path":"a.txt"})?',
  ]);
  const done = await client.responses.stream(approving(asked)).finalResponse();
  expect(shown(done)).toEqual([
    'reader.remove({"path":"a.txt"}) completed: removed a.txt',
    expect.stringMatching(/^desk\.reader\(.*\) completed: .*Read it\./),
    expect.stringMatching(/^so: /),
  ]);
  expect(removed).toEqual(["a.txt"]);
});

test("answers of the wrong kind, to missing requests, or with a message are refused and decide nothing", async () => {
  const { client, runtime } = await responsesServed();
  const asked = await client.responses.create({ model: "desk", input: "remove" });
  const question = await client.responses.create({ model: "desk", input: "ask" });
  const output = { type: "function_call_output", call_id: openOf(question), output: "Ann" } as const;
  const approval = { type: "mcp_approval_response", approval_request_id: openOf(asked), approve: true } as const;
  const cases = [
    { previous_response_id: asked.id, input: [{ ...output, call_id: openOf(asked).replace("mcpr_", "call_") }] },
    { previous_response_id: asked.id, input: [approval, approval] },
    { previous_response_id: asked.id, input: [approval, { role: "user", content: "please" } as const] },
    { previous_response_id: question.id, input: [approval] },
    { conversation: "another", input: [approval] },
    { input: [approval, output] },
  ];
  for (const body of cases) expect((await refusal(client.responses.create({ model: "desk", ...body })))[0]).toBe(400);
  expect((await refusal(client.responses.create({ input: [{ ...output, call_id: "call_x" }] })))[0]).toBe(404);
  expect(await runtime.requests({ status: "decided" })).toEqual([]);
});
