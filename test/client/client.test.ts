import type { TroupeEvent } from "troupe";
import { createClient, type TroupeClient, TroupeClientError } from "troupe/client";
import { describe, expect, it } from "vitest";
import { tokens } from "../server/served.ts";
import { clientServed } from "./client-served.ts";

async function taken(events: AsyncIterable<TroupeEvent>, most = Number.POSITIVE_INFINITY): Promise<TroupeEvent[]> {
  const found: TroupeEvent[] = [];
  for await (const event of events) if (found.push(event) >= most) break;
  return found;
}

const cursorsOf = (events: readonly TroupeEvent[]): readonly string[] => events.flatMap(({ cursor }) => cursor ?? []);

describe("a client", () => {
  it("creates an agent, runs a turn and reads its result", async () => {
    const { client } = await clientServed();
    expect((await client.definitions()).map(({ name }) => name)).toEqual(["desk"]);
    const agent = await client.createAgent({ definition: "desk", key: "case 7", metadata: { colour: "red" } });
    expect((await client.createAgent({ definition: "desk", key: "case 7" })).agentId).toBe(agent.agentId);
    const turn = await agent.executeTurn("hello");
    expect(await turn.settled()).toMatchObject({ status: "completed", result: { text: "You said hello" } });
    expect((await agent.messages()).items.map(({ role, content }) => [role, content])).toEqual([
      ["user", "hello"],
      ["assistant", "You said hello"],
    ]);
    expect(await agent.info()).toMatchObject({ turnCount: 1, metadata: { colour: "red" } });
    expect((await agent.turns()).items).toMatchObject([{ number: 1, status: "completed" }]);
    expect((await client.agents({ limit: 1 })).items).toMatchObject([{ agentId: agent.agentId }]);
  });

  it("approves a shown call, answers a question, has been at a page, and returns the result of its own tool", async () => {
    const { client } = await clientServed();
    const agent = await client.createAgent({ definition: "desk" });
    const decided = async (input: string, decision: Parameters<TroupeClient["decide"]>[1]) => {
      const locate = { name: "locate", description: "Where it is.", parameters: { type: "object", properties: {} } };
      const turn = await agent.executeTurn(input, { clientTools: [locate] });
      const [request] = (await turn.settled()).requests;
      if (request === undefined) throw new Error("nothing waits");
      expect((await client.requests({ root: agent.agentId })).items).toEqual([request]);
      await client.decide(request, decision);
      return { request, text: (await turn.settled()).result?.text };
    };
    const { request, text } = await decided("remove", { verdict: "edited", arguments: { path: "/var" } });
    expect(text).toBe("So: removed /var");
    expect((await decided("ask", { verdict: "answered", result: "this" })).text).toBe("So: this");
    expect((await decided("visit", { verdict: "provided" })).text).toBe("So: it was provided");
    expect((await decided("locate", { verdict: "answered", result: { at: 3 } })).text).toBe('So: {"at":3}');
    await expect(client.decide(request, { verdict: "approved" })).rejects.toMatchObject({
      name: "TroupeClientError",
      status: 409,
      code: "request_conflict",
    });
  });

  it("pauses, resumes and aborts", async () => {
    const { client } = await clientServed();
    const agent = await client.createAgent({ definition: "desk" });
    const turn = await agent.executeTurn("remove");
    await turn.settled();
    expect((await agent.pause()).status).toBe("paused");
    expect((await agent.resume()).status).not.toBe("paused");
    await agent.abort("no longer wanted");
    expect(await turn.settled()).toMatchObject({ status: "stopped", result: { stopReason: "user_requested" } });
  });
});

describe("a stream", () => {
  it("continues after each cut without gaps or duplicates", async () => {
    const { client, clientWith, fetch: send } = await clientServed();
    const agent = await client.createAgent({ definition: "desk" });
    const turn = await agent.executeTurn("hello");
    await turn.settled();
    const whole = await taken(turn.follow());
    expect(whole.at(-1)?.type).toBe("turn.completed");
    let opened = 0;
    // Each connection breaks in the middle of its second frame.
    const cutting: typeof fetch = async (input, init) => {
      const response = await send(input, init);
      opened += 1;
      return cutAfter(response, 900);
    };
    const events = await taken(clientWith({ fetch: cutting }).agent(agent.agentId).turn(1).follow());
    expect(cursorsOf(events)).toEqual(cursorsOf(whole));
    expect(opened).toBeGreaterThan(2);
  });

  it("of a turn continues after a stored cursor, as after a reload of its page", async () => {
    const { client } = await clientServed();
    const agent = await client.createAgent({ definition: "desk" });
    const turn = await agent.executeTurn("hello");
    await turn.settled();
    const whole = await taken(turn.follow());
    const after = cursorsOf(whole)[2];
    const rest = await taken(client.agent(agent.agentId).turn(1).follow({ after }));
    expect(cursorsOf(rest)).toEqual(cursorsOf(whole).slice(3));
  });

  it("of a tree begins after the cursor of the tree, and ends with its signal", async () => {
    const { client } = await clientServed();
    const agent = await client.createAgent({ definition: "desk" });
    await (await agent.executeTurn("one")).settled();
    const { cursor, agents } = await client.tree(agent.agentId);
    expect(agents).toMatchObject([{ turnCount: 1 }]);
    const left = new AbortController();
    const reading = (async () => {
      const found: string[] = [];
      for await (const event of client.follow(agent.agentId, { after: cursor, signal: left.signal })) {
        if (event.type === "turn.started") found.push(event.prompt);
        if (event.type === "turn.completed") left.abort(new Error("enough"));
      }
      return found;
    })();
    await agent.executeTurn("two");
    await expect(reading).rejects.toThrow("enough");
  });

  it("is not reopened if the server refuses it", async () => {
    const { client, sent } = await clientServed();
    const events = client.follow("no-such-agent");
    await expect(events.next()).rejects.toMatchObject({ status: 404, code: "not_found", retryable: false });
    expect(sent).toHaveLength(1);
  });

  it("fails with an explanation if the answer has another format", async () => {
    const other = createClient({ url: "http://127.0.0.1", fetch: async () => new Response("<p>", { status: 200 }) });
    await expect(other.follow("a").next()).rejects.toMatchObject({ code: "unexpected_answer", status: 200 });
    await expect(other.agents()).rejects.toMatchObject({ code: "unexpected_answer" });
  });
});

describe("a request without an answer", () => {
  it("is sent again with the same key, and starts one turn", async () => {
    const { client, clientWith, fetch: send, sent } = await clientServed();
    const agent = await client.createAgent({ definition: "desk" });
    let lost = 0;
    const losing: typeof fetch = async (input, init) => {
      const response = await send(input, init);
      if (lost >= 1) return response;
      lost += 1;
      throw new TypeError("connection reset");
    };
    const turn = await clientWith({ fetch: losing }).agent(agent.agentId).executeTurn("hello");
    expect(turn.number).toBe(1);
    const keys = sent.filter(({ what }) => what.endsWith("/turns")).map(({ key }) => key);
    expect(keys).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/), keys[0]]);
    expect((await agent.turns()).items).toHaveLength(1);
  });

  it("fails after the retries, with its cause", async () => {
    const { clientWith } = await clientServed();
    const cause = new TypeError("connection refused");
    const client = clientWith({ retries: 1, fetch: () => Promise.reject(cause) });
    await expect(client.agents()).rejects.toMatchObject({ code: "unreachable", status: null, retryable: true, cause });
  });

  it("ends immediately if its signal aborts", async () => {
    const { clientWith } = await clientServed();
    const client = clientWith({ fetch: () => Promise.reject(new TypeError("connection refused")) });
    const reason = new Error("left");
    const left = new AbortController();
    const asked = client.agents({ signal: left.signal });
    left.abort(reason);
    await expect(asked).rejects.toBe(reason);
  });
});

describe("a refused request", () => {
  it("to the server has its status, code, message and the id of its log line", async () => {
    const { clientWith, lines } = await clientServed();
    const asked = clientWith({ headers: { authorization: "Bearer wrong" } }).agents();
    const error = await asked.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(TroupeClientError);
    expect(error).toMatchObject({ status: 401, code: "unauthenticated", retryable: false });
    expect((error as TroupeClientError).requestId).toBe(lines.at(-1)?.requestId);
  });

  it("while another turn is open is not retried", async () => {
    const { client, sent } = await clientServed();
    const agent = await client.createAgent({ definition: "desk" });
    await (await agent.executeTurn("ask")).settled();
    const before = sent.length;
    await expect(agent.executeTurn("hello")).rejects.toMatchObject({ status: 409, code: "agent_busy" });
    expect(sent.length).toBe(before + 1);
  });

  const request = { requestId: "a#1:1:0:1", argumentsHash: "b" };
  const wrong: readonly (readonly [string, (client: TroupeClient) => unknown])[] = [
    ["a definition without a name", (client) => client.createAgent({ definition: "" })],
    ["a misspelt option of an agent", (client) => client.createAgent({ definition: "desk", name: "x" } as never)],
    ["a key that is too long", (client) => client.createAgent({ definition: "desk", key: "x".repeat(256) })],
    ["an invalid id", (client) => client.agent("")],
    ["a turn 0", (client) => client.agent("a").turn(0)],
    ["an input that is a number", (client) => client.agent("a").executeTurn(7 as never)],
    ["an empty list of parts", (client) => client.agent("a").executeTurn([])],
    ["an unknown part", (client) => client.agent("a").executeTurn([{ type: "sound" } as never])],
    ["a misspelt option of a turn", (client) => client.agent("a").executeTurn("b", { ifbusy: "queue" } as never)],
    ["a file without its type", (client) => client.agent("a").executeTurn([{ type: "file" } as never])],
    ["settings that are no object", (client) => client.agent("a").executeTurn("b", { settings: 5 as never })],
    [
      "an unknown setting",
      (client) => client.agent("a").executeTurn("b", { settings: { providerOptions: {} } as never }),
    ],
    ["an unknown ifBusy", (client) => client.agent("a").executeTurn("b", { ifBusy: "wait" as never })],
    ["a key with a space", (client) => client.agent("a").executeTurn("b", { idempotencyKey: "a b" })],
    ["a page of 1,000", (client) => client.agents({ limit: 1_000 })],
    ["an invalid verdict", (client) => client.decide(request, { verdict: "yes" as never })],
    ["edited without arguments", (client) => client.decide(request, { verdict: "edited" } as never)],
    ["approved with arguments", (client) => client.decide(request, { verdict: "approved", arguments: {} } as never)],
    [
      "a request without its hash",
      (client) => client.decide({ requestId: "a#1:1:0:1" } as never, { verdict: "approved" }),
    ],
    ["an empty cursor", (client) => client.follow("a", { after: "" })],
  ];

  it.each(wrong)("before it is sent: %s", async (_, call) => {
    const { client, sent } = await clientServed();
    const refused = (async () => await call(client))();
    await expect(refused).rejects.toMatchObject({ name: "TroupeClientError", code: "invalid_input", status: null });
    expect(sent).toEqual([]);
  });

  it.each(["", "ftp://a", "http://a?b=c", 7])("a URL like %j", (url) => {
    expect(() => createClient({ url: url as string })).toThrow("pass an http: or https: address without a query");
  });
});

it("headers are read for each request, and may be available later", async () => {
  const { clientWith } = await clientServed();
  let asked = 0;
  const client = clientWith({
    headers: async () => {
      asked += 1;
      return await Promise.resolve({ authorization: `Bearer ${tokens.ann}` });
    },
  });
  await client.agents();
  await client.agents();
  expect(asked).toBe(2);
});

/** The answer with a connection that breaks after this many bytes. */
function cutAfter(response: Response, bytes: number): Response {
  let left = bytes;
  const cut = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      controller.enqueue(chunk.slice(0, left));
      left -= chunk.length;
      if (left < 0) controller.error(new TypeError("connection reset"));
    },
  });
  return new Response(response.body?.pipeThrough(cut) ?? null, response);
}
