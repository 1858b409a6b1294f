// Data of another caller is answered byte for byte like missing data, over every route and every kind of name.
import { openaiSurface } from "troupe/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { tokens } from "../served.ts";
import { type Ask, serveTwoTenants, strangers, type Told, type TwoTenants } from "../strangers.ts";
import { desk, showTool } from "./openai-served.ts";

const unknown = `call_${Buffer.from("0123456789abcdef0123456789abcdef#1:1:0:1").toString("base64url")}`;
const user = { role: "user", content: "show" };
const chat = (messages: readonly object[], more: object = {}): Partial<Ask> => ({
  body: { model: "desk", messages, ...more },
});
const called = (id: string) => [
  user,
  {
    role: "assistant",
    content: null,
    tool_calls: [{ id, type: "function", function: { name: "show", arguments: "{}" } }],
  },
  { role: "tool", tool_call_id: id, content: "shown by a stranger" },
];

/** Every request that names existing data. A conversation is excluded: its name means one of the caller's own. */
const asks: Readonly<Record<string, (toolCallId: string) => Partial<Ask>>> = {
  "a result": (id) => chat(called(id)),
  "a result in a stream": (id) => chat(called(id), { stream: true }),
  "a result in a conversation": (id) => ({ ...chat(called(id)), headers: { "x-troupe-conversation": "holiday" } }),
  "a result with a key": (id) => ({ ...chat(called(id)), headers: { "idempotency-key": "k" } }),
  "a repeated result": (id) => ({ ...chat(called(id)), headers: { "x-stainless-retry-count": "1" } }),
};

let tenants: TwoTenants;
let known = "";

const ask = async (asked: Partial<Ask>, token: string | null): Promise<Told> =>
  await tenants.ask({ path: "/v1/chat/completions", ...asked }, token);

interface Completion {
  readonly choices: readonly [
    { readonly message: { readonly content: string; readonly tool_calls?: readonly [{ id: string }] } },
  ];
}
const completionIn = (text: string): Completion["choices"][0]["message"] =>
  (JSON.parse(text) as Completion).choices[0].message;

beforeAll(async () => {
  tenants = await serveTwoTenants([desk()], { surfaces: [openaiSurface({ agents: ["desk"] })] });
  const { text } = await ask(
    { ...chat([user], { tools: [showTool] }), headers: { "x-troupe-conversation": "holiday" } },
    tokens.ann,
  );
  known = completionIn(text).tool_calls?.[0].id ?? "";
});
afterAll(async () => {
  await tenants.close();
});

describe.each(Object.entries(strangers))("%s", (_, token) => {
  it.each(Object.entries(asks))("learns nothing by %s", async (_name, of) => {
    const [own, other] = [await ask(of(known), token), await ask(of(unknown), token)];
    expect(own).toEqual(other);
    expect([404, 401]).toContain(own.status);
    expect(own.text).toMatch(/no such tool call|Incorrect API key/);
  });

  it.each(["/v1/models", "/v1/models/desk", "/v1/models/unknown"])("receives no data of others at %s", async (path) => {
    const answer = await ask({ path, method: "GET" }, token);
    const isCaller = token === tokens.bob || token === tokens.eve;
    expect(answer.status).toBe(isCaller ? (path.endsWith("unknown") ? 404 : 200) : 401);
  });
});

it("the same conversation name means another one for each user, and its open requests are not decided by others", async () => {
  const said = (token: string) =>
    ask({ ...chat([{ role: "user", content: "all" }]), headers: { "x-troupe-conversation": "holiday" } }, token);
  expect(completionIn((await said(tokens.bob)).text).content).toBe("1: all");
  expect(completionIn((await said(tokens.eve)).text).content).toBe("1: all");
  // Ann's own conversation waits for the result, and her message is refused.
  expect((await said(tokens.ann)).status).toBe(409);
  const [request] = await tenants.runtimes.default.requests();
  expect(request?.status).toBe("open");
  const { status, text } = await ask(asks["a result"]?.(known) ?? {}, tokens.ann);
  expect([status, completionIn(text).content]).toEqual([200, "so: shown by a stranger"]);
});

const hostile = [
  "../../etc/passwd",
  "a".repeat(900),
  "{}",
  "*",
  "__proto__",
  "desk#1",
  "call_",
  "call_!!",
  "x.1:2:0:1",
  "\ud800",
];

it.each(hostile)("%j is an ordinary model, call and conversation name", async (text) => {
  const model = await ask({ body: { model: text, messages: [user] } }, tokens.ann);
  expect([model.status, JSON.parse(model.text)]).toMatchObject([
    404,
    { error: { code: "model_not_found", param: "model" } },
  ]);
  const path = await ask({ path: `/v1/models/${encodeURIComponent(text.toWellFormed())}`, method: "GET" }, tokens.ann);
  expect(path.status).toBe(404);
  for (const id of [text, `call_${Buffer.from(text).toString("base64url")}`]) {
    const call = await ask(chat(called(id)), tokens.ann);
    expect([call.status, call.text]).toEqual([404, expect.stringContaining("no such tool call")]);
  }
  if (!text.isWellFormed()) return;
  const headers = { "x-troupe-conversation": text };
  const begun = await ask({ ...chat([{ role: "user", content: text }]), headers }, tokens.ann);
  const again = await ask({ ...chat([{ role: "user", content: text }]), headers }, tokens.ann);
  expect([begun, again].map((answer) => completionIn(answer.text).content)).toEqual([`1: ${text}`, `2: ${text}`]);
});

it.each([
  ["no messages", { messages: [] }, "messages"],
  ["an unknown role", { messages: [{ role: "root", content: "x" }] }, "messages[0].role"],
  ["content of a wrong type", { messages: [{ role: "user", content: 7 }] }, "messages[0].content"],
  [
    "a part of an unknown type",
    { messages: [{ role: "user", content: [{ type: "file" }] }] },
    "messages[0].content[0]",
  ],
  ["an answer at the end", { messages: [user, { role: "assistant", content: "x" }] }, "messages"],
  [
    "an invalid image",
    { messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "file:///etc/passwd" } }] }] },
    null,
  ],
  ["a result with a message", { messages: [user, { role: "tool", tool_call_id: "x", content: "x" }] }, "messages"],
  ["a tool of another kind", { messages: [user], tools: [{ type: "custom" }] }, "tools[0].type"],
  [
    "a tool named as one of the agent",
    { messages: [user], tools: [{ type: "function", function: { name: "remove" } }] },
    null,
  ],
])("%s is refused, and its path is named", async (_, body, param) => {
  const { status, text } = await ask({ body: { model: "desk", ...body } }, tokens.ann);
  expect([status, JSON.parse(text)]).toMatchObject([400, { error: { type: "invalid_request_error", param } }]);
});

it("a name of a conversation that is too long is refused", async () => {
  const headers = { "x-troupe-conversation": "a".repeat(1_001) };
  expect(await ask({ ...chat([user]), headers }, tokens.ann)).toMatchObject({ status: 400 });
});
