// Data of another caller is answered byte for byte like missing data, over every route of the Responses API.
import type { Response as ModelResponse } from "openai/resources/responses/responses";
import { openaiSurface } from "troupe/server";
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import { openedId, sealedId } from "../../../src/server/core/url-ids.ts";
import { desk } from "../ag-ui/ag-ui-served.ts";
import { tokens } from "../served.ts";
import { type Ask, serveTwoTenants, strangers, type Told, type TwoTenants } from "../strangers.ts";
import { openOf, responsesServed } from "./responses-served.ts";

interface Ids {
  readonly response: string;
  readonly approval: string;
  readonly call: string;
}

const other = "0123456789abcdef0123456789abcdef#1";
const unknown: Ids = {
  response: sealedId("resp", other),
  approval: sealedId("mcpr", `${other}:1:0:1`),
  call: sealedId("call", `${other}:1:0:1`),
};

const create = (body: (ids: Ids) => object) => (ids: Ids) => ({
  method: "POST",
  path: "/v1/responses",
  body: { model: "desk", ...body(ids) },
});
const at =
  (method: string, after = "") =>
  ({ response }: Ids): Ask => ({ method, path: `/v1/responses/${encodeURIComponent(response)}${after}` });
const approved = ({ approval }: Ids) => [
  { type: "mcp_approval_response", approval_request_id: approval, approve: true },
];

/** Every request that names a response or one of its requests. */
const asks: Readonly<Record<string, (ids: Ids) => Ask>> = {
  "follow on": create(({ response }) => ({ previous_response_id: response, input: "go on" })),
  "follow on, streamed": create(({ response }) => ({ previous_response_id: response, input: "go on", stream: true })),
  "follow on in the background": create(({ response }) => ({
    previous_response_id: response,
    input: "go on",
    background: true,
  })),
  "approve after it": create((ids) => ({ previous_response_id: ids.response, input: approved(ids) })),
  approve: create((ids) => ({ input: approved(ids) })),
  "approve, streamed": create((ids) => ({ input: approved(ids), stream: true })),
  answer: create(({ call }) => ({ input: [{ type: "function_call_output", call_id: call, output: "yes" }] })),
  retrieve: at("GET"),
  "retrieve its stream": at("GET", "?stream=true&starting_after=1"),
  cancel: at("POST", "/cancel"),
  "input items": at("GET", "/input_items"),
  delete: at("DELETE"),
};

const removed: string[] = [];
let known: Ids;
let tenants: TwoTenants;

const ask = async (asked: Ask, token: string | null): Promise<Told> => await tenants.ask(asked, token);

beforeAll(async () => {
  tenants = await serveTwoTenants([desk(removed)], { surfaces: [openaiSurface()] });
  const { text } = await ask(create(() => ({ input: "remove" }))(unknown), tokens.ann);
  const asked = JSON.parse(text) as ModelResponse;
  known = { response: asked.id, approval: openOf(asked), call: openOf(asked).replace("mcpr_", "call_") };
});
afterAll(async () => {
  await tenants.close();
});

describe.each(Object.entries(strangers))("%s", (_, token) => {
  it.each(Object.entries(asks))("learns nothing by: %s", async (_name, of) => {
    const [own, none] = [await ask(of(known), token), await ask(of(unknown), token)];
    expect(own).toEqual(none);
    expect([401, 404]).toContain(own.status);
    expect(own.text).toMatch(/there is no such (?:response|request)|Incorrect API key/);
  });
});

test("the owner sees that nothing was decided, and existing data is answered differently", async () => {
  expect(removed).toEqual([]);
  expect((await ask(at("GET")(known), tokens.ann)).status).toBe(200);
  expect((await ask(at("GET")(unknown), tokens.ann)).status).toBe(404);
});

test.each([
  "",
  "resp_",
  "../../etc/passwd",
  "\0",
  "desk#1",
  "a".repeat(5_000),
  "{}",
  "*",
  "\n",
  "𝒳",
  "__proto__",
  ...["", " ", "#", "#1", "x#0", "x#-1", "x#1.5", "x#1 x#1:1:0:1", "x#9007199254740993", "\0#1", "__proto__#1"].map(
    (id) => sealedId("resp", id),
  ),
])("a response named %j does not exist", async (text) => {
  const ids = { ...known, response: text };
  const named = { previous_response_id: text, input: "go on" };
  const follow = await ask({ method: "POST", path: "/v1/responses", body: named }, tokens.ann);
  expect([follow.status, JSON.parse(follow.text)]).toMatchObject([
    404,
    { error: { code: "not_found", param: "previous_response_id", message: "there is no such response" } },
  ]);
  if (text === "") return;
  for (const one of ["retrieve", "retrieve its stream", "cancel", "input items", "delete"]) {
    const { status } = await ask(asks[one]?.(ids) ?? { method: "GET", path: "/" }, tokens.ann);
    expect([one, status]).toEqual([one, 404]);
  }
});

test("a malformed id derived from an own one does not exist", async () => {
  const { client } = await responsesServed();
  const asked = await client.responses.create({ model: "desk", input: "remove" });
  const second = await client.responses.create({ model: "desk", input: "delegate" });
  const [one = "", two = ""] = [asked, second].map(({ id }) => openedId("resp", id));
  const wrong = [`${one} ${one}:1:0:1`, `${two} ${one}:1:0:1`, `${one} `, `${one} x y`, ` ${one}`, `${one}0`];
  for (const id of wrong) {
    await expect(client.responses.retrieve(sealedId("resp", id))).rejects.toMatchObject({ status: 404 });
  }
});

test.each(["../../etc/passwd", "\0", "a b\nc", "𝒳", "\ud800", "__proto__", "{}*:"])(
  "a conversation named %j is an ordinary one",
  async (conversation) => {
    const go = create(() => ({ conversation, input: "hello" }));
    const texts = [await ask(go(unknown), tokens.ann), await ask(go(unknown), tokens.ann)].map(({ text }) => text);
    const [first, second] = texts.map((text) => JSON.parse(text) as ModelResponse);
    expect([first?.status, second?.status]).toEqual(["completed", "completed"]);
    expect([first, second].map((response) => JSON.stringify(response?.output).includes("1: hello"))).toEqual([
      true,
      false,
    ]);
  },
);
