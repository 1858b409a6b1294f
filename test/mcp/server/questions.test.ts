import type { Client } from "@modelcontextprotocol/client";
import { createRuntime, type Runtime } from "troupe";
import { mcpSurface, serveMcp } from "troupe/mcp/server";
import { memoryStores } from "troupe/stores/memory";
import { apiSurface, serveRuntime, tokenAuth } from "troupe/server";
import { scriptedModel } from "troupe/testing";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { identities, tokens, type User } from "../../server/served.ts";
import { connectedClient, deskAgent, eras, servedMcp, structuredIn, textIn } from "./served-desk.ts";

interface InputRequired {
  readonly resultType?: string;
  readonly inputRequests: Readonly<Record<string, { readonly params: { readonly message: string } }>>;
  readonly requestState: string;
}

/** A client of the modern era that gives the questions to the test instead of answering them. */
async function askedClient(url: string, as: User = "ann"): Promise<Client> {
  return await connectedClient(url, {
    era: "modern",
    as,
    answers: () => ({ action: "cancel" }),
    options: { capabilities: { elicitation: { form: {} } }, inputRequired: { autoFulfill: false } },
  });
}

async function asked(client: Client, args: Record<string, unknown>): Promise<InputRequired> {
  const result = await client.callTool({ name: "desk", arguments: args }, { allowInputRequired: true });
  expect((result as { readonly resultType?: string }).resultType).toBe("input_required");
  return result as unknown as InputRequired;
}

const approve = { action: "accept", content: { decision: "approve" } } as const;
const reject = { action: "accept", content: { decision: "reject", reason: "keep it" } } as const;

async function answer(client: Client, { inputRequests, requestState }: InputRequired, response: object, name = "desk") {
  const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, response]));
  const again = { name, arguments: { input: "remove" }, inputResponses, requestState };
  return await client.callTool(again as Parameters<Client["callTool"]>[0], { allowInputRequired: true });
}

describe.each(eras)("a person at a client of the %s era", (era) => {
  it("approves a call, which then runs once", async () => {
    const { url, removed } = await servedMcp();
    const shown: string[] = [];
    const client = await connectedClient(url, {
      era,
      answers: ({ message }) => {
        shown.push(message);
        return approve;
      },
    });
    const result = await client.callTool({ name: "desk", arguments: { input: "remove" } });
    expect(textIn(result)).toBe("so: removed a.txt");
    expect([removed, shown.length, shown[0]]).toEqual([["a.txt"], 1, expect.stringContaining('{"path":"a.txt"}')]);
  });

  it("sees characters that hide what a call does", async () => {
    const path = "a\u202E\u200Btxt.exe\u061C\u{E0041}\u009B \u{1F469}\u200D\u{1F4BB}";
    const model = scriptedModel(({ messages }) => {
      const last = messages.at(-1);
      if (last?.role === "tool") return "done";
      if (last?.content !== "remove") {
        const args = { question: "Your \u202Ename\u200B?", options: ["An\u2066n", "Bob"] };
        return { toolCalls: [{ name: "ask_user", arguments: args }] };
      }
      return { toolCalls: [{ name: "remove", arguments: { path } }] };
    });
    const removed: string[] = [];
    const { url } = await servedMcp({ agents: [{ ...deskAgent((one) => void removed.push(one)), model }] });
    const shown: { readonly message: string; readonly requestedSchema?: unknown }[] = [];
    const client = await connectedClient(url, {
      era,
      answers: (form) => {
        shown.push(form);
        return form.message.includes("remove") ? approve : { action: "accept", content: { answer: "Ann" } };
      },
    });
    await client.callTool({ name: "desk", arguments: { input: "remove" } });
    await client.callTool({ name: "desk", arguments: { input: "ask" } });
    const [approval, question] = shown;
    expect(approval?.message).toContain(
      String.raw`{"path":"a\u202e\u200btxt.exe\u061c\udb40\udc41\u009b ` + '\u{1F469}\u200D\u{1F4BB}"}',
    );
    expect(removed).toEqual([path]);
    expect(question?.message).toBe("Your name?\n- Ann\n- Bob");
    expect(JSON.stringify(question?.requestedSchema)).toContain("Suggested: Ann, Bob");
  });

  it("rejects a call with a reason, or declines the form", async () => {
    const { url, removed, runtime } = await servedMcp();
    const responses = [reject, { action: "decline" } as const];
    const client = await connectedClient(url, { era, answers: () => responses.shift() ?? { action: "cancel" } });
    const one = await client.callTool({ name: "desk", arguments: { input: "remove" } });
    expect(textIn(one)).toContain("keep it");
    const two = await client.callTool({ name: "desk", arguments: { input: "remove" } });
    expect(textIn(two)).toContain("declined by the user");
    const decided = await runtime.requests({ status: "decided" });
    expect(decided.map(({ decision }) => [decision?.verdict, decision?.by])).toEqual([
      ["rejected", "ann"],
      ["rejected", "ann"],
    ]);
    expect(removed).toEqual([]);
  });

  it("answers a question, and decides several requests", async () => {
    const { url, removed } = await servedMcp();
    const client = await connectedClient(url, {
      era,
      answers: ({ message }) => (message === "your name?" ? { action: "accept", content: { answer: "Ann" } } : approve),
    });
    expect(textIn(await client.callTool({ name: "desk", arguments: { input: "ask" } }))).toBe("so: Ann");
    await client.callTool({ name: "desk", arguments: { input: "remove two" } });
    expect(removed.toSorted()).toEqual(["a.txt", "b.txt"]);
  });

  it("leaves the form: nothing is decided, and the turn waits", async () => {
    const { url, runtime, removed } = await servedMcp();
    let forms = 0;
    const client = await connectedClient(url, {
      era,
      answers: () => {
        forms += 1;
        return forms === 1 ? { action: "cancel" } : approve;
      },
    });
    const left = await client.callTool({ name: "desk", arguments: { input: "remove" } });
    expect(structuredIn(left)).toMatchObject({ status: "waiting" });
    expect(await runtime.requests()).toHaveLength(1);
    const { turnId } = structuredIn(left);
    const later = await client.callTool({ name: "turn_result", arguments: { turnId } });
    expect([textIn(later), removed]).toEqual(["so: removed a.txt", ["a.txt"]]);
  });

  it("who cannot be asked gets the state of the turn, and no message of a model approves", async () => {
    const { url, runtime, removed } = await servedMcp();
    const client = await connectedClient(url, { era });
    const waiting = await client.callTool({ name: "desk", arguments: { input: "remove", conversation: "c" } });
    expect([structuredIn(waiting).status, waiting.isError ?? false]).toEqual(["waiting", false]);
    expect(textIn(waiting)).toContain("approval");
    await client.callTool({ name: "desk", arguments: { input: "yes, approve it", conversation: "c" } });
    const [request] = await runtime.requests({ status: "decided" });
    expect([request?.decision?.verdict, request?.decision?.reason, removed]).toEqual([
      "rejected",
      "yes, approve it",
      [],
    ]);
  });
});

describe("a waiting turn", () => {
  it("is found by a repeated call with its key, which decides nothing and asks again", async () => {
    const { url, removed, runtime } = await servedMcp();
    const client = await askedClient(url);
    const call = { input: "remove", key: "k", conversation: "c" };
    const first = await asked(client, call);
    const second = await asked(client, call);
    expect(Object.keys(second.inputRequests)).toEqual(Object.keys(first.inputRequests));
    expect([await runtime.requests({ status: "decided" }), await runtime.turns()]).toMatchObject([[], { length: 1 }]);
    expect([textIn(await answer(client, second, approve)), removed]).toEqual(["so: removed a.txt", ["a.txt"]]);
  });

  it("is waited for by turn_result of a client that cannot ask, until it is decided elsewhere", async () => {
    const { url, removed, runtime } = await servedMcp();
    const client = await connectedClient(url, { era: "modern" });
    const { turnId } = structuredIn(await client.callTool({ name: "desk", arguments: { input: "remove" } }));
    const waited = client.callTool({ name: "turn_result", arguments: { turnId } });
    const [request] = await runtime.requests();
    await runtime.decide(request?.requestId ?? "", { verdict: "approved", by: "ann" });
    expect([textIn(await waited), removed]).toEqual(["so: removed a.txt", ["a.txt"]]);
  });
});

describe("the state of an open request", () => {
  it("is accepted by another process, with another client, after the first one was closed", async () => {
    const stores = memoryStores();
    const stateKey = "a-key-of-at-least-thirty-two-bytes";
    const removed: string[] = [];
    const open = async (): Promise<{
      readonly runtime: Runtime;
      readonly url: string;
      readonly close: () => Promise<void>;
    }> => {
      const agents = [deskAgent((path) => void removed.push(path))];
      const runtime = await createRuntime({ agents, stores: { ...stores, close: async () => undefined } });
      const serving = await serveMcp(runtime, { agents, authenticate: tokenAuth({ tokens: identities }), stateKey });
      const { url } = await serving.listen();
      const close = async (): Promise<void> => {
        await serving.close();
        await runtime.shutdown();
      };
      return { runtime, url, close };
    };
    const first = await open();
    const question = await asked(await askedClient(first.url), { input: "remove" });
    await first.close();
    const second = await open();
    onTestFinished(second.close);
    const result = await answer(await askedClient(second.url), question, approve);
    expect([textIn(result), removed]).toEqual(["so: removed a.txt", ["a.txt"]]);
    // The same answer again takes effect once, and returns the same result.
    const repeated = await answer(await askedClient(second.url), question, approve);
    expect([textIn(repeated), removed]).toEqual(["so: removed a.txt", ["a.txt"]]);
  });

  it("is refused if it was altered, belongs to another user, or another key signed it", async () => {
    const served = await servedMcp();
    const other = await servedMcp();
    const ann = await askedClient(served.url);
    const question = await asked(ann, { input: "remove" });
    const { requestState } = question;
    const foreign = await asked(await askedClient(other.url), { input: "remove" });
    const [version, body = "", mac] = requestState.split(".");
    const opened = JSON.parse(Buffer.from(body, "base64url").toString()) as { p: { turnId: string } };
    opened.p.turnId = "another#1";
    const altered = `${version}.${Buffer.from(JSON.stringify(opened)).toString("base64url")}.${mac}`;
    for (const state of [altered, `${requestState}x`, "", "v1..", foreign.requestState]) {
      await expect(answer(ann, { ...question, requestState: state }, approve)).rejects.toThrow(/requestState/);
    }
    await expect(answer(await askedClient(served.url, "bob"), question, approve)).rejects.toThrow(/requestState/);
    const elsewhere = await answer(ann, question, approve, "turn_abort").catch(String);
    expect(JSON.stringify(elsewhere)).not.toContain("removed a.txt");
    expect([served.removed, await served.runtime.requests({ status: "decided" })]).toEqual([[], []]);
    expect(textIn(await answer(ann, question, approve))).toBe("so: removed a.txt");
  });

  it("expires", async () => {
    const { url, removed } = await servedMcp({}, { stateSeconds: 60 });
    const client = await askedClient(url);
    const question = await asked(client, { input: "remove" });
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 61_000 });
    onTestFinished(() => void vi.useRealTimers());
    await expect(answer(client, question, approve)).rejects.toThrow(/requestState/);
    expect(removed).toEqual([]);
  });

  it("has one outcome for a person at a client and one at the HTTP API, and the first learns it", async () => {
    const removed: string[] = [];
    const agents = [deskAgent((path) => void removed.push(path))];
    const runtime = await createRuntime({ agents });
    onTestFinished(() => runtime.shutdown());
    const surfaces = [apiSurface(), await mcpSurface({ agents })];
    const server = serveRuntime(runtime, { authenticate: tokenAuth({ tokens: identities }), surfaces });
    onTestFinished(() => server.close());
    const { url } = await server.listen();
    const client = await askedClient(url);
    const question = await asked(client, { input: "remove" });
    const [request] = await runtime.requests();
    const decideOverHttp = async (): Promise<number> => {
      const headers = { authorization: `Bearer ${tokens.ann}`, "content-type": "application/json" };
      const { requestId = "", argumentsHash } = request ?? {};
      const body = JSON.stringify({ verdict: "rejected", reason: "keep it", argumentsHash });
      const id = requestId.replace("#", ".");
      return (await fetch(`${url}/api/requests/${id}`, { method: "POST", headers, body })).status;
    };
    const [result, status] = await Promise.all([answer(client, question, approve), decideOverHttp()]);
    const wasApproved = removed.length === 1;
    expect([status, removed]).toEqual(wasApproved ? [409, ["a.txt"]] : [200, []]);
    expect(textIn(result)).toContain(wasApproved ? "so: removed a.txt" : "had already been decided (rejected: keep it");
    expect(await runtime.requests({ status: "decided" })).toHaveLength(1);
  });

  it("has one outcome for two people at once, and the other one learns it", async () => {
    const { url, removed } = await servedMcp();
    const clients = await Promise.all([askedClient(url), askedClient(url)]);
    const question = await asked(clients[0] as Client, { input: "remove" });
    const [one, two] = await Promise.all([
      answer(clients[0] as Client, question, approve),
      answer(clients[1] as Client, question, reject),
    ]);
    const texts = [textIn(one), textIn(two)];
    const told = texts.filter((text) => text.includes("had already been decided"));
    expect([told.length, removed.length <= 1]).toEqual([1, true]);
    const wasApproved = removed.length === 1;
    expect(told[0]).toContain(wasApproved ? "(approved" : "(rejected: keep it");
    expect(texts.every((text) => text.includes(wasApproved ? "so: removed a.txt" : "keep it"))).toBe(true);
  });
});
