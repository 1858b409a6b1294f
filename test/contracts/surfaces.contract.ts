import { createRuntime, askUser, defineAgent, defineTool, type Runtime } from "troupe";
import type { Surface } from "troupe/server";
import { scriptedModel } from "troupe/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { requestOf, type Served, serve, type User } from "../server/served.ts";

/** A message of a user to the agent `desk`. */
export interface SurfaceMessage {
  readonly as?: User | undefined;
  readonly text: string;
  /** The client's name of the conversation, or the surface's from an earlier answer (`conversation`). */
  readonly conversation?: string | undefined;
  readonly key?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** An answer as the suite reads it. */
export interface SurfaceAnswer {
  readonly status: number;
  /** The text of the completed turn; otherwise `null`. */
  readonly text: string | null;
  /** Open requests of the turn, by the surface's own ids. */
  readonly waitsFor: readonly string[];
  readonly isReplayed: boolean;
  /** Identifies the conversation in a later message. */
  readonly conversation: string;
  /** Identifies the turn. */
  readonly turn: string;
}

/** Drives one surface for the suite. */
export interface SurfaceDriver {
  readonly surfaces: (runtime: Runtime) => readonly Surface[];
  /** A conversation name, if the protocol lets clients choose it. */
  readonly chosenName?: string | undefined;
  /** Opens a conversation for a message without one, if messages do not do that themselves. */
  readonly open?: ((served: Served, message: SurfaceMessage) => Promise<string>) | undefined;
  /**
   * The effect of a message to a waiting turn: a decision, as in protocols that only have messages, or a new turn, which
   * is refused with 409 and decides nothing.
   */
  readonly messageIs: "decision" | "turn";
  /** The status of a message to another user's conversation; 200 if the name is resolved per user. */
  readonly foreignStatus: 200 | 401 | 404;
  /** The HTTP request of a message. */
  readonly request: (message: SurfaceMessage) => Request;
  /** Reads the answer to a message; it may send further requests. */
  readonly read: (served: Served, response: Response, message: SurfaceMessage) => Promise<SurfaceAnswer>;
  /** Decides a request of `waitsFor`. */
  readonly decide: (requestId: string, verdict: "approve" | "reject", as: User, answer: SurfaceAnswer) => Request;
  /** The status of a request for data of another user. */
  readonly strangerStatus: 401 | 404;
}

/**
 * An agent that asks for approval of `remove`, asks a person for a name, or repeats its input with the number of
 * messages that it sees.
 */
async function servedDesk(
  driver: SurfaceDriver,
): Promise<Served & { readonly runtime: Runtime; readonly removed: string[] }> {
  const removed: string[] = [];
  const remove = defineTool({
    name: "remove",
    description: "Removes a file",
    parameters: z.object({ path: z.string() }),
    needsApproval: true,
    execute: ({ path }) => {
      removed.push(path);
      return `removed ${path}`;
    },
  });
  const model = scriptedModel(({ messages }) => {
    const last = messages.at(-1);
    const text = typeof last?.content === "string" ? last.content : JSON.stringify(last?.content);
    if (last?.role === "tool") return { text: `so: ${text}` };
    if (text === "remove") return { toolCalls: [{ name: "remove", arguments: { path: "a.txt" } }] };
    if (text === "remove two") {
      const calls = ["a.txt", "b.txt"].map((path) => ({ name: "remove", arguments: { path } }));
      return { toolCalls: calls };
    }
    if (text === "ask") return { toolCalls: [{ name: "askUser", arguments: { question: "your name?" } }] };
    return { text: `${messages.filter(({ role }) => role === "user").length}: ${text}` };
  });
  const desk = defineAgent({ name: "desk", model, tools: [remove, askUser({ name: "askUser" })] });
  const runtime = await createRuntime({ agents: [desk] });
  onTestFinished(() => runtime.shutdown());
  return { ...serve(runtime, { surfaces: driver.surfaces(runtime) }), runtime, removed };
}

/**
 * The rules for surfaces of every protocol. Tests of plain messages to a waiting turn run only where such a message is
 * a decision.
 */
export function surfaceSuite(name: string, driver: SurfaceDriver): void {
  const requestFor = async (served: Served, message: SurfaceMessage): Promise<Request> => {
    const { conversation = await driver.open?.(served, message) } = message;
    return driver.request({ ...message, conversation });
  };
  const send = async (served: Served, message: SurfaceMessage): Promise<SurfaceAnswer> =>
    await driver.read(served, await served.server.fetch(await requestFor(served, message)), message);

  describe(`${name}: conversations`, () => {
    it("continue with the next message", async () => {
      const served = await servedDesk(driver);
      const one = await send(served, { text: "hello" });
      expect([one.status, one.text]).toEqual([200, "1: hello"]);
      const two = await send(served, { text: "again", conversation: one.conversation });
      expect([two.status, two.text]).toEqual([200, "2: again"]);
      expect(two.turn).not.toBe(one.turn);
    });

    it("of one user are separate from those of another", async () => {
      const served = await servedDesk(driver);
      const { conversation } = await send(served, { text: "hello", conversation: driver.chosenName });
      const foreign = await served.server.fetch(
        driver.request({ as: "bob", text: "again", conversation: driver.chosenName ?? conversation }),
      );
      const text = await foreign.text();
      expect([foreign.status, text.includes("hello"), text.includes("2: again")]).toEqual([
        driver.foreignStatus,
        false,
        false,
      ]);
      const own = await send(served, { text: "again", conversation });
      expect([own.status, own.text]).toEqual([200, "2: again"]);
    });
  });

  describe.runIf(driver.messageIs === "turn")(`${name}: a new turn while another one waits`, () => {
    it.each([
      ["remove two", 2],
      ["ask", 1],
    ])("after %j is refused and decides nothing", async (text, count) => {
      const served = await servedDesk(driver);
      const one = await send(served, { text });
      expect(one.waitsFor).toHaveLength(count);
      const request = driver.request({ text: "yes, I approve it", conversation: one.conversation });
      expect((await served.server.fetch(request)).status).toBe(409);
      expect(await served.runtime.requests({ status: "decided" })).toEqual([]);
      expect(served.removed).toEqual([]);
    });
  });

  describe.runIf(driver.messageIs === "decision")(`${name}: a plain message to a waiting turn`, () => {
    it.each(["yes", "approve", "go on, I approve it"])("%j rejects its approvals and never approves", async (text) => {
      const served = await servedDesk(driver);
      const one = await send(served, { text: "remove two" });
      expect(one.waitsFor).toHaveLength(2);
      await send(served, { text, conversation: one.conversation });
      const requests = await served.runtime.requests({ status: "decided" });
      expect(requests.map(({ decision }) => [decision?.verdict, decision?.reason, decision?.by])).toEqual([
        ["rejected", text, "ann"],
        ["rejected", text, "ann"],
      ]);
      expect(served.removed).toEqual([]);
    });

    it("answers its one open question", async () => {
      const served = await servedDesk(driver);
      const one = await send(served, { text: "ask" });
      expect(one.waitsFor).toHaveLength(1);
      const two = await send(served, { text: "Ann", conversation: one.conversation });
      expect(two.turn).toBe(one.turn);
      const [request] = await served.runtime.requests({ status: "decided" });
      expect(request?.decision?.result?.text).toContain("Ann");
    });
  });

  describe(`${name}: a request`, () => {
    it("is decided by its owner and by no other user", async () => {
      const served = await servedDesk(driver);
      const one = await send(served, { text: "remove" });
      const [requestId = ""] = one.waitsFor;
      for (const verdict of ["approve", "reject"] as const) {
        const stranger = await served.server.fetch(driver.decide(requestId, verdict, "bob", one));
        expect(stranger.status).toBe(driver.strangerStatus);
      }
      expect(served.removed).toEqual([]);
      const own = await served.server.fetch(driver.decide(requestId, "approve", "ann", one));
      expect(own.status).toBeLessThan(300);
      await expect.poll(() => served.removed).toEqual(["a.txt"]);
    });

    it("has one verdict for all concurrent callers", async () => {
      const served = await servedDesk(driver);
      const one = await send(served, { text: "remove" });
      const [requestId = ""] = one.waitsFor;
      const verdicts = Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? "approve" : "reject"));
      const answers = await Promise.all(
        verdicts.map((verdict) => served.server.fetch(driver.decide(requestId, verdict, "ann", one))),
      );
      await Promise.all(answers.map((answer) => answer.text()));
      const [request] = await served.runtime.requests({ status: "decided" });
      const won = request?.decision?.verdict === "approved" ? "approve" : "reject";
      const statuses = answers.map(({ status }, index) => [verdicts[index] === won ? "same" : "other", status]);
      expect(statuses.filter(([side, status]) => side === "other" && status !== 409)).toEqual([]);
      expect(statuses.filter(([side, status]) => side === "same" && Number(status) < 300)).not.toEqual([]);
      const agent = await served.runtime.find(request?.agentId ?? "");
      await agent.turn(request?.turnId ?? "").result;
      expect(served.removed).toEqual(won === "approve" ? ["a.txt"] : []);
    });
  });

  describe(`${name}: an idempotency key`, () => {
    it("opens one turn for 50 equal requests", async () => {
      const served = await servedDesk(driver);
      const message = { text: "hello", key: "k-1" };
      const answers = await Promise.all(Array.from({ length: 50 }, () => send(served, message)));
      expect(new Set(answers.map(({ turn, text, status }) => `${turn} ${text} ${status}`)).size).toBe(1);
      expect(await served.runtime.turns()).toHaveLength(1);
      expect(await send(served, message)).toMatchObject({ isReplayed: true, text: "1: hello" });
    });

    it("is refused with another body and is free for another user", async () => {
      const served = await servedDesk(driver);
      const one = await send(served, { text: "hello", key: "k-1" });
      const other = await served.server.fetch(await requestFor(served, { text: "bye", key: "k-1" }));
      expect(other.status).toBe(422);
      const bob = await send(served, { as: "bob", text: "bye", key: "k-1" });
      expect([bob.text, bob.turn === one.turn]).toEqual(["1: bye", false]);
    });
  });

  it(`${name}: a turn goes on when its client disconnects`, async () => {
    const served = await servedDesk(driver);
    const client = new AbortController();
    const asked = served.server.fetch(await requestFor(served, { text: "hello", signal: client.signal }));
    client.abort();
    await (await asked).body?.cancel();
    await expect.poll(async () => (await served.runtime.turns()).map(({ status }) => status)).toEqual(["completed"]);
  });

  it(`${name}: a body that is deep, sets prototypes, or is not JSON, is refused`, async () => {
    const served = await servedDesk(driver);
    const request = await requestFor(served, { text: "hello" });
    for (const body of [
      "[".repeat(10_000),
      `{"a":${"[".repeat(1_000)}${"]".repeat(1_000)}}`,
      '{"__proto__":{}}',
      "{",
    ]) {
      const response = await served.server.fetch(
        new Request(request.url, { method: "POST", headers: request.headers, body }),
      );
      expect([body.slice(0, 20), response.status]).toEqual([
        body.slice(0, 20),
        expect.toSatisfy((status) => status === 400 || status === 422),
      ]);
    }
    expect(await served.runtime.turns()).toEqual([]);
  });

  it(`${name}: a body of too many values is refused before it is parsed, and the error names the limit and how to raise it`, async () => {
    const served = await servedDesk(driver);
    const request = await requestFor(served, { text: "hello" });
    const post = (body: string): Promise<Response> =>
      served.server.fetch(new Request(request.url, { method: "POST", headers: request.headers, body }));
    for (const body of [`[${"0,".repeat(50_000)}0]`, `{"a":[${"[],".repeat(25_000)}[]]}`, "[".repeat(100_000)]) {
      const response = await post(body);
      const words = await response.text();
      expect([body.slice(0, 20), response.status, words]).toEqual([
        body.slice(0, 20),
        413,
        expect.stringMatching(/50000 values.*limits\.bodyValues/),
      ]);
    }
    // A long text contains the same characters and is one value.
    expect((await post(`{"text":"${"[,{".repeat(100_000)}\\""}`)).status).not.toBe(413);
  });

  it(`${name}: requests without a valid token are refused`, async () => {
    const served = await servedDesk(driver);
    const request = await requestFor(served, { text: "hello" });
    const headers = new Headers(request.headers);
    headers.delete("authorization");
    const response = await served.server.fetch(
      new Request(request.url, { method: "POST", headers, body: await request.text() }),
    );
    expect([response.status, response.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
    expect(
      (await served.server.fetch(requestOf(new URL(request.url).pathname, { as: "eve", method: "POST", body: {} })))
        .status,
    ).toBe(401);
  });
}
