// Data of another caller is answered byte for byte like missing data; hostile texts and bodies, and unusual clients.
import { agUiSurface } from "troupe/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { tokens } from "../served.ts";
import { type Ask, serveTwoTenants, strangers, type Told, type TwoTenants } from "../strangers.ts";
import { desk, deskServed } from "./ag-ui-served.ts";

interface Ids {
  readonly threadId: string;
  readonly requestId: string;
  readonly callId: string;
}

const unknown: Ids = {
  threadId: "an unknown thread",
  requestId: "0123456789abcdef0123456789abcdef#1:1:0:1",
  callId: "0123456789abcdef0123456789abcdef#1:1:0",
};

const resumed = ({ requestId: interruptId }: Ids) => ({ interruptId, status: "resolved", payload: { approved: true } });

/** Every request that names data of a user. */
const asks: Readonly<Record<string, (ids: Ids) => Ask>> = {
  "a run that resumes": (ids) => ({
    path: "/ag-ui/desk",
    body: { threadId: "mine", runId: "r", messages: [], resume: [resumed(ids)] },
  }),
  "a run that cancels": (ids) => ({
    path: "/ag-ui/desk",
    body: { threadId: "mine", runId: "r", messages: [], resume: [{ interruptId: ids.requestId, status: "cancelled" }] },
  }),
  "a run that resumes in the thread's name": (ids) => ({
    path: "/ag-ui/desk",
    body: { threadId: "shared name", runId: "r", messages: [], resume: [resumed(ids)] },
  }),
  "cancelling the thread": ({ threadId }) => ({ path: "/ag-ui/desk/cancel", body: { threadId } }),
  "cancelling its run": ({ threadId }) => ({ path: "/ag-ui/desk/cancel", body: { threadId, runId: "run of ann" } }),
};

const removed: string[] = [];
const annsThread = "shared name";
let known: Ids;
let tenants: TwoTenants;

const ask = async (asked: Ask, token: string | null): Promise<Told> => await tenants.ask(asked, token);

beforeAll(async () => {
  tenants = await serveTwoTenants([desk(removed)], { surfaces: [agUiSurface()] });
  const messages = [{ id: "said", role: "user", content: "remove" }];
  await ask({ path: "/ag-ui/desk", body: { threadId: annsThread, runId: "run of ann", messages } }, tokens.ann);
  const [request] = await tenants.runtimes.default.requests();
  known = { threadId: annsThread, requestId: request?.requestId ?? "", callId: request?.callId ?? "" };
});
afterAll(async () => {
  await tenants.close();
});

describe.each(Object.keys(asks))("%s", (name) => {
  it.each(Object.keys(strangers))("is answered to %s like a missing thread", async (who) => {
    const token = strangers[who] ?? null;
    const [own, other] = [known, unknown].map((ids) => asks[name]?.(ids) ?? { path: "/", body: {} });
    const [about, nothing] = [await ask(own as Ask, token), await ask(other as Ask, token)];
    expect(about).toEqual(nothing);
    expect([401, 404]).toContain(about.status);
    expect(about.text).not.toContain(known.requestId);
  });
});

it("the same thread name of another caller is another thread, without any data of this one", async () => {
  for (const token of [tokens.bob, tokens.eve]) {
    const toolResult = { id: "t", role: "tool", toolCallId: known.callId, content: "done" };
    for (const messages of [[], [toolResult]]) {
      const { status, text } = await ask(
        { path: "/ag-ui/desk", body: { threadId: annsThread, runId: "run of ann", messages } },
        token,
      );
      expect([status, text.includes("remove"), text.includes("RUN_FINISHED")]).toEqual([200, false, true]);
    }
  }
  expect((await tenants.runtimes.default.requests()).map(({ status }) => status)).toEqual(["open"]);
  expect(removed).toEqual([]);
});

it("an agent that is not served is answered like a missing one", async () => {
  const one = await deskServed({}, { surfaces: [agUiSurface({ agents: ["desk"] })] });
  const body = { threadId: "t", runId: "r", messages: [] };
  const answers = await Promise.all(
    ["reader", "nobody", "__proto__", "constructor", "desk%00"].map(async (agent) => {
      const response = await one.ask(`/ag-ui/${agent}`, { method: "POST", body });
      return [response.status, await response.text()];
    }),
  );
  expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
  expect(answers[0]).toEqual([
    404,
    JSON.stringify({ type: "RUN_ERROR", message: "there is no such agent", code: "not_found" }),
  ]);
});

const said = (content: unknown, more: object = {}) => ({ id: "m", role: "user", content, ...more });
const run = (more: object) => ({ threadId: "t", runId: "r", messages: [said("hello")], ...more });

it.each<[string, unknown]>([
  ["no thread", { runId: "r", messages: [] }],
  ["an empty run", run({ runId: "" })],
  ["a number as run id", run({ runId: 7 })],
  ["a thread id of 2,000 characters", run({ threadId: "x".repeat(2_000) })],
  ["a text as messages", run({ messages: "hello" })],
  ["an unknown role", run({ messages: [{ id: "m", role: "god", content: "x" }] })],
  ["a message without an id", run({ messages: [{ role: "user", content: "x" }] })],
  ["content that is an object", run({ messages: [said({ text: "x" })] })],
  ["a picture without data", run({ messages: [said([{ type: "image" }])] })],
  ["a video", run({ messages: [said([{ type: "video", source: { type: "url", value: "https://x" } }])] })],
  ["a tool without a valid name", run({ tools: [{ name: 7 }] })],
  ["a tool with the name of one of the agent's", run({ tools: [{ name: "remove", description: "", parameters: {} }] })],
  ["a tool with invalid parameters", run({ tools: [{ name: "x", description: "", parameters: { type: 7 } }] })],
  ["a context without a value", run({ context: [{ description: "x" }] })],
  ["an unknown status", run({ resume: [{ interruptId: "x", status: "maybe" }] })],
  ["an unknown interrupt", run({ messages: [], resume: [{ interruptId: "x", status: "cancelled" }] })],
])("%s is refused, and nothing is stored", async (_, body) => {
  const { ask: send, runtime } = await deskServed();
  const response = await send("/ag-ui/desk", { method: "POST", body });
  expect([400, 404]).toContain(response.status);
  const answer = (await response.json()) as { readonly type: string; readonly message: string };
  expect([answer.type, typeof answer.message]).toEqual(["RUN_ERROR", "string"]);
  expect(await runtime.turns()).toEqual([]);
});

it.each(["../../etc/passwd", "\0", "a b\nc", "𝒳", "\ud800", "__proto__", "{}*:", "#1:in", "x".repeat(1_000)])(
  "a thread, a run and a message named %j are ordinary ones",
  async (name) => {
    const { ask: send, runtime } = await deskServed();
    const body = { threadId: name, runId: name, messages: [said("hello", { id: name })] };
    const answers = [];
    for (const _ of [1, 2]) {
      const response = await send("/ag-ui/desk", { method: "POST", body });
      answers.push(response.status, (await response.text()).includes("1: hello"));
    }
    expect(answers).toEqual([200, expect.any(Boolean), 200, true]);
    expect(await runtime.turns()).toHaveLength(1);
  },
);

it("accepts unusual and legal input: a long history, unknown fields, and unused roles", async () => {
  const { ask: send } = await deskServed();
  const history = Array.from({ length: 3_000 }, (_, index) => ({
    id: `old ${index}`,
    role: (["user", "assistant", "reasoning", "activity", "system", "developer"] as const)[index % 6],
    content: index % 6 === 3 ? { steps: [] } : "x".repeat(200),
    name: "somebody",
    encryptedValue: "…",
    activityType: "PLAN",
  }));
  const body = {
    ...run({ messages: [...history, { id: "last", role: "assistant" }, said("hello")] }),
    state: { any: ["thing"] },
    forwardedProps: { command: 1 },
    parentRunId: "earlier",
    protocolVersion: "9.9",
    unknown: { of: "no use" },
  };
  const response = await send("/ag-ui/desk", { method: "POST", body });
  expect([response.status, (await response.text()).includes('"outcome":{"type":"success"}')]).toEqual([200, true]);
});

it("cancels only a running run, by its id, and once", async () => {
  const { ask: send } = await deskServed();
  const cancel = async (body: object) => {
    const response = await send("/ag-ui/desk/cancel", { method: "POST", body });
    return response.status === 200 ? ((await response.json()) as { cancelled: boolean }).cancelled : response.status;
  };
  expect(await cancel({ threadId: "t" })).toBe(404);
  await (await send("/ag-ui/desk", { method: "POST", body: run({ messages: [said("remove")] }) })).text();
  expect(await cancel({ threadId: "t", runId: "another" })).toBe(false);
  expect(await cancel({ threadId: "t", runId: "r" })).toBe(true);
  expect(await cancel({ threadId: "t" })).toBe(false);
});
