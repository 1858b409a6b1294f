import { afterEach, expect, it } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool, type LanguageModel, openaiModel } from "../../src/index.ts";
import {
  type ModelServer,
  type ServerAnswer,
  startModelServer,
  type WireRequestBody,
} from "../support/model-server.ts";
import { describeRuntimes } from "../support/runtimes.ts";

const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({}),
  effect: "none",
  execute: () => "seen",
});

/** What a strict provider refuses in a history, or `undefined` if it accepts it. */
function faultOf({ messages }: WireRequestBody, takesId: (id: string) => boolean): string | undefined {
  const ids = new Set<string>();
  const open = new Set<string>();
  for (const { tool_calls: calls = [], tool_call_id: answered } of messages) {
    for (const call of calls) {
      if (!/^[a-zA-Z0-9_-]{1,64}$/.test(call.function.name)) return `name ${JSON.stringify(call.function.name)}`;
      if (!takesId(call.id)) return `id ${JSON.stringify(call.id)}`;
      if (ids.has(call.id)) return `double id ${call.id}`;
      ids.add(call.id);
      open.add(call.id);
    }
    if (answered !== undefined && !open.delete(answered)) return `result of no call: ${answered}`;
  }
  return open.size > 0 ? `no result: ${[...open].join()}` : undefined;
}

const named = (...names: readonly string[]) => ({ toolCalls: names.map((name) => ({ name })) });
const identified = (...ids: readonly string[]) => ({ toolCalls: ids.map((id) => ({ name: "look", id })) });

const isPortable = (id: string) => /^[a-zA-Z0-9]{9}$/.test(id);
const idsSent = ({ requests }: ModelServer) =>
  (requests.at(-1)?.body.messages ?? []).flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id));

describeRuntimes("calls whose names or ids a strict provider would refuse in the history", (stage) => {
  const servers: ModelServer[] = [];

  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => server.stop()));
  });

  const ids = ["functions.look:0", "a b", `call_1__thought__${"y".repeat(300)}`, "🦊", "z"];

  /** A server whose models accept their own ids, listed by model name, and portable ids. */
  async function serve(own: Readonly<Record<string, readonly string[]>>, answer: ServerAnswer) {
    const server = await startModelServer((body) => {
      const fault = faultOf(body, (id) => isPortable(id) || own[body.model]?.includes(id) === true);
      if (fault !== undefined) return { status: 400, errorBody: { error: { message: fault } } };
      return body.messages.at(-1)?.role === "user" ? answer : "done";
    });
    servers.push(server);
    return server;
  }

  async function turnWith(model: LanguageModel, input: string) {
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model, tools: [look] })] });
    const agent = await runtime.agent("worker", { agentId: "worker-1" });
    await agent.start();
    expect(await agent.executeTurn(input).result).toMatchObject({ status: "completed", text: "done" });
    const messages = await agent.getMessages();
    await runtime.shutdown();
    return messages.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []));
  }

  it("names: every later turn works, and the messages contain the names the model wrote", async () => {
    const names = ["functions.add", "", "a b\0", "x".repeat(100), "🦊", "functions:add", "look"];
    const server = await startModelServer((body) => {
      const fault = faultOf(body, () => true);
      if (fault !== undefined) return { status: 400, errorBody: { error: { message: fault } } };
      return body.messages.at(-1)?.role === "user" ? named(...names) : "done";
    });
    servers.push(server);
    const model = openaiModel("strict", { apiKey: "k", baseURL: server.baseURL });
    let calls = await turnWith(model, "go");
    calls = await turnWith(model, "again");
    expect(calls.map(({ name }) => name)).toEqual([...names, ...names]);
  });

  it("ids: the model that wrote them gets them back, even after a restart, and another model gets portable ones", async () => {
    const server = await serve({ own: ids }, identified(...ids));
    const at = (name: string) => openaiModel(name, { apiKey: "k", baseURL: server.baseURL });
    await turnWith(at("own"), "go");
    expect(idsSent(server)).toEqual(ids);
    // The model returns the same ids again.
    await turnWith(at("own"), "again");
    expect(idsSent(server).slice(0, ids.length)).toEqual(ids);
    expect(idsSent(server).slice(ids.length).every(isPortable)).toBe(true);
    const elsewhere = await serve({}, "done");
    await turnWith(openaiModel("own", { apiKey: "k", baseURL: elsewhere.baseURL }), "at another address");
    expect(idsSent(elsewhere).every(isPortable)).toBe(true);
    const calls = await turnWith(at("own"), "and back");
    expect(idsSent(server).slice(0, ids.length)).toEqual(ids);
    expect(calls.map(({ providerId }) => providerId)).toEqual([...ids, ...ids, ...ids]);
  });

  it("ids and reasoning: each of two models behind one adapter gets its own back", async () => {
    const answer = { ...identified("functions.look:0"), reasoning: "signed" };
    const server = await serve({ one: ["functions.look:0"], two: ["functions.look:0"] }, answer);
    const models = ["one", "two"].map((name) => openaiModel(name, { apiKey: "k", baseURL: server.baseURL }));
    let asked = 0;
    const either: LanguageModel = {
      name: "either",
      provider: "mine",
      countPromptTokens: () => 10,
      // Each turn makes two calls, both to the same model.
      generate: (request, options) => {
        const model = models[Math.floor(asked / 2) % 2];
        asked += 1;
        if (!model) throw new Error("no model");
        return model.generate(request, options);
      },
    };
    const back: unknown[] = [];
    for (const input of ["first", "second", "third"]) {
      await turnWith(either, input);
      const { messages = [] } = server.requests.at(-1)?.body ?? {};
      back.push(messages.flatMap((message) => (message.tool_calls ? ["reasoning_content" in message] : [])));
    }
    expect(back).toEqual([[true], [false, true], [true, false, true]]);
    expect(idsSent(server)).toEqual([
      "functions.look:0",
      expect.stringMatching(/^\w{9}$/),
      expect.stringMatching(/^\w{9}$/),
    ]);
  });
});
