// The main flows of chat completions with the official client.
import type { OpenAI } from "openai";
import { APIError, ConflictError } from "openai";
import type { RuntimeServer } from "troupe/server";
import { expect, test, vi } from "vitest";
import { clientOf } from "./official-client.ts";
import { deskServed, showTool } from "./openai-served.ts";

type Message = OpenAI.ChatCompletionMessageParam;

/** The surface's output outside the protocol. */
interface More {
  readonly troupe: {
    readonly type?: string;
    readonly agentId: string;
    readonly turnId: string;
    readonly status: string;
    readonly stopReason?: string;
    readonly requests: readonly { readonly requestId: string; readonly argumentsHash: string }[];
  };
}

const result = (id = "", content = "shown"): Message => ({ role: "tool", tool_call_id: id, content });
const user = (content: string): Message => ({ role: "user", content });
const model = "desk";

/** A user's message with a file. */
function asking(data: string): Message {
  return {
    role: "user",
    content: [
      { type: "text", text: "read this" },
      { type: "file", file: { filename: "a.pdf", file_data: `data:application/pdf;base64,${data}` } },
    ],
  };
}

/** A front end that keeps the whole history and sends it each time. */
class Chat {
  readonly client: OpenAI;
  readonly messages: Message[] = [];
  last: (OpenAI.ChatCompletion & More) | undefined;
  readonly #more: Partial<OpenAI.ChatCompletionCreateParamsNonStreaming>;

  constructor(
    server: RuntimeServer,
    { name, ...more }: { name?: string } & Partial<OpenAI.ChatCompletionCreateParamsNonStreaming> = {},
  ) {
    this.client = clientOf(server, { defaultHeaders: name === undefined ? {} : { "x-chat": name } });
    this.#more = more;
  }

  async say(...messages: readonly (string | Message)[]): Promise<string | null> {
    this.messages.push(...messages.map((message) => (typeof message === "string" ? user(message) : message)));
    const completion = await this.client.chat.completions.create({ ...this.#more, model, messages: this.messages });
    this.last = completion as OpenAI.ChatCompletion & More;
    const message = completion.choices[0]?.message;
    if (message !== undefined) this.messages.push(message);
    return message?.content ?? null;
  }
}

const surface = { chatIdHeaders: ["X-Chat"] };
const served = () => deskServed({}, { surface });

test("a text; the history identifies the conversation, and each request has its own agent", async () => {
  const { server, runtime } = await served();
  const chat = new Chat(server);
  expect(await chat.say("hello")).toBe("1: hello");
  const first = chat.last;
  expect(first).toMatchObject({
    object: "chat.completion",
    model: "desk",
    choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", refusal: null } }],
    usage: {
      prompt_tokens: expect.any(Number),
      completion_tokens: expect.any(Number),
      total_tokens: expect.any(Number),
    },
    troupe: { status: "completed", requests: [] },
  });
  expect(first?.usage?.total_tokens).toBeGreaterThan(0);
  expect(await chat.say("again")).toBe("2: again");
  expect(chat.last?.troupe.agentId).not.toBe(first?.troupe.agentId);
  expect((await runtime.turns()).map(({ number }) => number)).toEqual([1, 1]);
});

test("a stream: the role, the pieces, the reason and the usage only", async () => {
  const { server } = await served();
  const client = clientOf(server);
  const stream = await client.chat.completions.create({
    model,
    messages: [user("think")],
    stream: true,
    stream_options: { include_usage: true },
  });
  const seen: unknown[] = [];
  const ids = new Set<string>();
  for await (const { id, object, choices, usage } of stream) {
    ids.add(`${id} ${object}`);
    seen.push([choices[0]?.delta, choices[0]?.finish_reason, usage === null ? null : typeof usage?.total_tokens]);
  }
  expect(seen).toEqual([
    [{ role: "assistant", content: "" }, null, null],
    [{ reasoning_content: "Let me see." }, null, null],
    [{ content: "It " }, null, null],
    [{ content: "is " }, null, null],
    [{ content: "so." }, null, null],
    [{}, "stop", null],
    [undefined, undefined, "number"],
  ]);
  expect(ids.size).toBe(1);
});

test("the client's own stream helper assembles the same answer", async () => {
  const { server } = await served();
  const stream = clientOf(server).chat.completions.stream({
    model,
    messages: [user("loop")],
    stream_options: { include_usage: true },
  });
  const pieces: string[] = [];
  stream.on("content", (delta) => pieces.push(delta));
  const completion = await stream.finalChatCompletion();
  expect(completion.choices[0]?.finish_reason).toBe("length");
  const whole = await clientOf(server).chat.completions.create({ model, messages: [user("loop")] });
  expect(whole.choices[0]).toMatchObject({
    finish_reason: "length",
    message: { content: completion.choices[0]?.message.content },
  });
  expect(pieces.join("")).toBe(Array.from({ length: 4 }, () => "Once more.").join("\n\n"));
  expect(completion.usage).toEqual(whole.usage);
});

test("tools of the server are reported outside the protocol, and never as calls", async () => {
  const { server } = await served();
  const stream = await clientOf(server).chat.completions.create({ model, messages: [user("loop")], stream: true });
  const told: unknown[] = [];
  for await (const chunk of stream) {
    const [choice] = chunk.choices;
    expect(choice?.delta).not.toHaveProperty("tool_calls");
    const { troupe } = chunk as unknown as Partial<More>;
    if (troupe?.type !== undefined) told.push([troupe.type, choice?.delta]);
  }
  expect(told.slice(0, 2)).toEqual([
    ["tool.started", {}],
    ["tool.completed", {}],
  ]);
});

test("system messages reach the model first, unless they are ignored", async () => {
  const { server } = await served();
  const messages: Message[] = [{ role: "system", content: "Be short." }, user("all")];
  const { choices } = await clientOf(server).chat.completions.create({ model, messages });
  expect(choices[0]?.message.content).toBe("2: The application gave these instructions:\nBe short.|all");
  const strict = await deskServed({}, { surface: { systemMessages: "ignore" } });
  const ignored = await clientOf(strict.server).chat.completions.create({ model, messages });
  expect(ignored.choices[0]?.message.content).toBe("1: all");
});

test("images and lists of parts are accepted", async () => {
  const { server } = await served();
  const url = "data:image/png;base64,iVBORw0KGgo=";
  const content = [
    { type: "text" as const, text: "look at " },
    { type: "image_url" as const, image_url: { url } },
    { type: "text" as const, text: "this" },
  ];
  const { choices } = await clientOf(server).chat.completions.create({ model, messages: [{ role: "user", content }] });
  expect(choices[0]?.message.content).toBe("1: look at this");
});

test("files and audio are accepted", async () => {
  const { server, runtime } = await served();
  const content = [
    { type: "text" as const, text: "read this" },
    { type: "file" as const, file: { filename: "a.pdf", file_data: "data:application/pdf;base64,AAAA" } },
    { type: "input_audio" as const, input_audio: { data: "BBBB", format: "mp3" as const } },
  ];
  const { choices } = await clientOf(server).chat.completions.create({ model, messages: [{ role: "user", content }] });
  expect(choices[0]?.message.content).toBe("1: read this");
  const [agent] = await runtime.list();
  const [asked] = await (await runtime.find(agent?.agentId ?? "")).getMessages();
  expect(asked?.content).toEqual([
    { type: "text", text: "read this" },
    { type: "file", mediaType: "application/pdf", url: "data:application/pdf;base64,AAAA", name: "a.pdf" },
    { type: "file", mediaType: "audio/mp3", url: "data:audio/mp3;base64,BBBB" },
  ]);
});

test("a conversation with another file of the same name and size is another conversation", async () => {
  const { server } = await served();
  const client = clientOf(server, { defaultHeaders: { "x-chat": "files" } });
  const agentOf = async (messages: Message[]) => {
    const answer = await client.chat.completions.create({ model, messages });
    return (answer as unknown as More).troupe.agentId;
  };
  const first = await agentOf([asking("AAAA")]);
  const later = [
    { role: "assistant" as const, content: "1: read this" },
    { role: "user" as const, content: "and?" },
  ];
  expect(await agentOf([asking("BBBB"), ...later])).not.toBe(first);
  expect(await agentOf([asking("AAAA"), ...later])).toBe(first);
});

test("a conversation continues in one agent while the client has its history, and is forked otherwise", async () => {
  const { server, runtime } = await served();
  const chat = new Chat(server, { name: "chat-1" });
  await chat.say("hello");
  const agentId = chat.last?.troupe.agentId;
  expect(await chat.say({ role: "system", content: "It is Monday." }, "again")).toBe("2: again");
  expect(chat.last?.troupe.agentId).toBe(agentId);
  // The user continues differently after the first answer.
  chat.messages.splice(2);
  expect(await chat.say("otherwise")).toBe("2: otherwise");
  const fork = chat.last?.troupe.agentId;
  expect(fork).not.toBe(agentId);
  expect(await chat.say("and on")).toBe("3: and on");
  expect(chat.last?.troupe.agentId).toBe(fork);
  // The first message once more, for another answer.
  const other = new Chat(server, { name: "chat-1" });
  expect(await other.say("hello")).toBe("1: hello");
  expect(other.last?.troupe.agentId).not.toBe(agentId);
  expect((await runtime.list({ sessionId: "chat-1" })).length).toBe(3);
});

test("a conversation from another protocol continues here, with its history or without", async () => {
  const { server, ask } = await served();
  const post = async (path: string, body: object): Promise<{ agentId: string }> =>
    (await (await ask(path, { method: "POST", body, headers: { prefer: "wait=30" } })).json()) as { agentId: string };
  const { agentId } = await post("/api/agents", { definition: "desk", key: "holiday" });
  await post(`/api/agents/${agentId}/turns`, { input: "hello" });
  const thin = clientOf(server, { defaultHeaders: { "x-troupe-conversation": "holiday" } });
  const { choices } = await thin.chat.completions.create({ model, messages: [user("again")] });
  expect(choices[0]?.message.content).toBe("2: again");
  const chat = new Chat(server, { name: "holiday" });
  chat.messages.push(user("hello"), { role: "assistant", content: "1: hello" });
  chat.messages.push(user("again"), { role: "assistant", content: [{ type: "text", text: "2: again" }] });
  expect(await chat.say("and on")).toBe("3: and on");
  expect(chat.last?.troupe.agentId).toBe(agentId);
  await post(`/api/agents/${agentId}/turns`, { input: "back" });
  expect(await (await ask(`/api/agents/${agentId}/messages`)).text()).toContain("4: back");
});

test("a question is sent as text, and the next message answers it", async () => {
  const { server } = await served();
  const chat = new Chat(server, { name: "chat-1" });
  expect(await chat.say("ask")).toBe("your name?");
  expect(chat.last).toMatchObject({
    choices: [{ finish_reason: "stop" }],
    troupe: { status: "waiting", requests: [{ kind: "question" }] },
  });
  const turn = chat.last?.troupe.turnId;
  expect(await chat.say("Ann")).toBe("so: Ann");
  expect(chat.last?.troupe.turnId).toBe(turn);
  expect(await chat.say("hello")).toBe("2: hello");
  expect(chat.last?.troupe.agentId).toBe(turn?.split("#")[0]);
});

test("a question of a subagent is sent as text too", async () => {
  const { server } = await served();
  const chat = new Chat(server, { name: "chat-1" });
  expect(await chat.say("delegate")).toBe("which page?");
  expect(await chat.say("the first")).toMatch(/^so: .*Read it\./);
  const agentId = chat.last?.troupe.agentId;
  expect(await chat.say("hello")).toBe("2: hello");
  expect(chat.last?.troupe.agentId).toBe(agentId);
});

test("a question without a conversation is the whole answer: its turn ends", async () => {
  const { server, runtime } = await served();
  const chat = new Chat(server);
  expect(await chat.say("ask")).toBe("your name?");
  expect(chat.last?.choices[0]?.finish_reason).toBe("stop");
  await vi.waitFor(
    async () => expect((await runtime.turns()).map(({ status }) => status)).toEqual(["stopped"]),
    30_000,
  );
  expect(await chat.say("Ann")).toBe("2: Ann");
});

test("an approval waits in a conversation, which continues after a decision elsewhere", async () => {
  const { server, removed, ask } = await served();
  const chat = new Chat(server, { name: "chat-1" });
  const text = await chat.say("remove");
  expect(text).toMatch(/^Let me remove it\.\n\nThis waits for approval: remove/);
  const { troupe } = chat.last ?? {};
  const [request] = troupe?.requests ?? [];
  const decided = await ask(`/api/requests/${request?.requestId.replace("#", ".")}`, {
    method: "POST",
    body: { verdict: "approved", argumentsHash: request?.argumentsHash },
  });
  expect(decided.status).toBe(200);
  const after = new Chat(server, { name: "chat-1" });
  after.messages.push(...chat.messages);
  const read = async (): Promise<string> => await (await ask(`/api/agents/${troupe?.agentId}/turns`)).text();
  await vi.waitFor(async () => expect(await read()).toContain("completed"), 30_000);
  expect(removed).toEqual(["a.txt"]);
  expect(await after.say("hello")).toBe("2: hello");
  expect(after.last?.troupe.agentId).toBe(troupe?.agentId);
});

test("any message to an approval rejects it and never approves", async () => {
  const { server, removed } = await served();
  const chat = new Chat(server, { name: "chat-1" });
  await chat.say("remove");
  expect(await chat.say("yes, do it")).toContain("yes, do it");
  expect(await chat.say("hello")).toBe("2: hello");
  expect(removed).toEqual([]);
});

test("an approval without a conversation is rejected, which the answer mentions, in a stream too", async () => {
  const { server, removed, runtime } = await served();
  const chat = new Chat(server);
  const text = await chat.say("remove");
  expect(text).toMatch(
    /^Let me remove it\.\n\n\(Not done: .*no conversation in which a person could approve it\.\)\n\nso: /,
  );
  const streamed = await clientOf(server)
    .chat.completions.stream({ model, messages: [user("remove")] })
    .finalContent();
  expect(streamed).toBe(text);
  expect(removed).toEqual([]);
  expect((await runtime.turns()).map(({ status }) => status)).toEqual(["completed", "completed"]);
});

test("a tool of the client: its call ends the answer, and its result continues the turn", async () => {
  const { server } = await served();
  for (const name of [undefined, "chat-1"]) {
    const chat = new Chat(server, { ...(name === undefined ? {} : { name }), tools: [showTool] });
    expect(await chat.say("show")).toBeNull();
    const [choice] = chat.last?.choices ?? [];
    const [call] = choice?.message.tool_calls ?? [];
    expect([choice?.finish_reason, call]).toMatchObject([
      "tool_calls",
      { type: "function", function: { name: "show", arguments: '{"what":"a map"}' } },
    ]);
    const turn = chat.last?.troupe.turnId;
    expect(await chat.say({ role: "tool", tool_call_id: call?.id ?? "", content: "the map is shown" })).toBe(
      "so: the map is shown",
    );
    expect(chat.last?.troupe.turnId).toBe(turn);
    expect(await chat.say("all")).toMatch(/^2: show\|all/);
    expect(chat.last?.troupe.agentId === turn?.split("#")[0]).toBe(name !== undefined);
  }
});

test("a message to a turn that waits for results is refused as not retryable", async () => {
  const { server } = await served();
  const chat = new Chat(server, { name: "chat-1", tools: [showTool] });
  await chat.say("show");
  const waiting = await chat.say("hello").catch((error: unknown) => error);
  expect(waiting).toBeInstanceOf(ConflictError);
  expect((waiting as ConflictError).headers?.get("x-should-retry")).toBe("false");
});

test("results are accepted together and repeatedly, and otherwise refused", async () => {
  const { server } = await served();
  const chat = new Chat(server, { tools: [showTool] });
  expect(await chat.say("show two")).toBe("Both.");
  const [one, two] = (chat.last?.choices[0]?.message.tool_calls ?? []).map(({ id }) => id);
  const before = [...chat.messages];
  const refused = await chat.say(result(one)).catch((error: unknown) => error);
  expect(refused).toMatchObject({ status: 400, param: "messages", message: expect.stringContaining(two ?? "") });
  expect(await chat.say(result(two))).toBe("so: shown");
  const again = new Chat(server, { tools: [showTool] });
  again.messages.push(...before, result(one));
  expect(await again.say(result(two))).toBe("so: shown");
  const other = new Chat(server, { tools: [showTool] });
  other.messages.push(...before, result(one, "something else"));
  await expect(other.say(result(two))).rejects.toBeInstanceOf(ConflictError);
});

test("the client's own runner runs its tools", async () => {
  const { server } = await served();
  const shown: string[] = [];
  const runner = clientOf(server).chat.completions.runTools({
    model,
    messages: [user("show")],
    tools: [
      {
        type: "function",
        function: {
          ...showTool.function,
          parse: JSON.parse,
          function: ({ what }: { what: string }) => {
            shown.push(what);
            return `${what} is shown`;
          },
        },
      },
    ],
  });
  expect(await runner.finalContent()).toBe("so: a map is shown");
  expect(shown).toEqual(["a map"]);
});

test("a failed turn is an error, also in the middle of a stream, and is not retried", async () => {
  const { server } = await served();
  let sent = 0;
  const client = clientOf(server, { maxRetries: 2, onRequest: () => (sent += 1) });
  const failure = { type: "server_error", message: expect.stringContaining("broken") };
  await expect(client.chat.completions.create({ model, messages: [user("fail")] })).rejects.toMatchObject({
    status: 500,
    ...failure,
  });
  expect(sent).toBe(1);
  const stream = await client.chat.completions.create({ model, messages: [user("fail")], stream: true });
  const read = async (): Promise<number> => {
    let chunks = 0;
    for await (const _ of stream) chunks += 1;
    return chunks;
  };
  const error = await read().catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(APIError);
  expect(error).toMatchObject({ error: failure });
});
