import { afterEach, expect, it } from "vitest";
import { z } from "zod";
import { type AgentOptions, defineAgent, defineTool, openaiModel, subagent, textOf } from "../../src/index.ts";
import { elapse } from "../support/journal-probes.ts";
import { chunk, done, modelAt, stopServers, usageChunk } from "../support/model-calls.ts";
import { type ModelServer, type ServerAnswer, startModelServer } from "../support/model-server.ts";
import { startRawServer } from "../support/raw-server.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { eventsOfTurn } from "../support/turn-probes.ts";

const weather = defineTool({
  name: "weather",
  description: "Tells the weather.",
  parameters: z.object({ city: z.string() }),
  effect: "none",
  execute: ({ city }) => `sun in ${city}`,
});
const asksForWeather = { toolCalls: [{ id: "call_w", name: "weather", arguments: { city: "Oslo" } }] } as const;

// Real sockets need turns of the event loop; the stores make no difference here.
describeRuntimes(
  "models over the wire",
  (stage) => {
    const servers: ModelServer[] = [];

    afterEach(async () => {
      await Promise.all(servers.splice(0).map((server) => server.stop()));
      await stopServers();
    });

    async function serve(answers: readonly ServerAnswer[], options: Partial<AgentOptions> = {}, name = "worker") {
      const server = await startModelServer((_body, { index }) => answers[index] ?? { status: 418 });
      servers.push(server);
      const model = openaiModel("served", { apiKey: "secret-key", baseURL: server.baseURL });
      return { server, definition: defineAgent({ name, ...options, model }) };
    }

    async function started(answers: readonly ServerAnswer[], options: Partial<AgentOptions> = {}) {
      const { server, definition } = await serve(answers, options);
      const runtime = await stage().open({ agents: [definition], random: () => 0.5 });
      const agent = await runtime.agent("worker", { agentId: "worker-1" });
      await agent.start();
      return { server, runtime, agent };
    }

    it("a turn with a tool, streamed to a subscriber", async () => {
      const { server, agent } = await started(
        [{ ...asksForWeather, text: "Let me see." }, { deltas: ["It is ", "sunny", "."] }],
        { instructions: "Be brief.", tools: [weather], temperature: 0.2 },
      );
      const turn = agent.executeTurn("How is Oslo?");
      const events = await eventsOfTurn(turn);
      const deltas = events.filter((event) => event.type === "text.delta");
      const pieces = deltas.filter(({ step }) => step === 2).map(({ text }) => text);
      expect(pieces.join("")).toBe("It is sunny.");
      expect(deltas.every(({ cursor }) => cursor === null)).toBe(true);
      expect((await turn.result).text).toBe("It is sunny.");
      const [first, second] = server.requests.map(({ body }) => body);
      expect(first).toMatchObject({ model: "served", stream: true, temperature: 0.2 });
      expect(first?.messages).toEqual([
        { role: "system", content: "Be brief." },
        { role: "user", content: "How is Oslo?" },
      ]);
      expect(first?.tools?.map((tool) => tool.function.name)).toEqual(["weather"]);
      expect(second?.messages.slice(2)).toEqual([
        {
          role: "assistant",
          content: "Let me see.",
          tool_calls: [{ id: "call_w", type: "function", function: { name: "weather", arguments: '{"city":"Oslo"}' } }],
        },
        { role: "tool", tool_call_id: "call_w", content: "sun in Oslo" },
      ]);
    });

    it("without a subscriber the request is for one whole answer", async () => {
      const { server, agent } = await started(["whole"]);
      expect((await agent.executeTurn("go").result).text).toBe("whole");
      expect(server.requests[0]?.body.stream).toBeUndefined();
    });

    it("reasoning is reported separately from the answer and sent back with its message", async () => {
      const { server, agent } = await started([{ ...asksForWeather, reasoning: "I need the weather." }, "sunny"], {
        tools: [weather],
      });
      const events = await eventsOfTurn(agent.executeTurn("How is Oslo?"));
      expect(events.filter((event) => event.type === "reasoning.delta").map(({ text }) => text)).toEqual([
        "I need the weather.",
      ]);
      expect(server.requests[1]?.body.messages[1]).toMatchObject({
        role: "assistant",
        reasoning_content: "I need the weather.",
      });
      expect((await agent.getMessages()).map(({ content }) => textOf(content)).join()).not.toContain("I need");
    });

    it("the response format is sent with every call", async () => {
      const schema = { type: "object", properties: { city: { type: "string" } } };
      const { server, agent } = await started([asksForWeather, '{"city":"Oslo"}'], {
        tools: [weather],
        responseFormat: { type: "json_schema", name: "answer", schema },
      });
      await agent.executeTurn("go").result;
      for (const { body } of server.requests) {
        expect(body["response_format"]).toEqual({ type: "json_schema", json_schema: { name: "answer", schema } });
      }
    });

    it.each([
      { limit: "none", options: {}, turn: {}, life: undefined, sent: undefined },
      { limit: "its own bound", options: { maxOutputTokens: 700 }, turn: {}, life: undefined, sent: 700 },
      { limit: "its definition", options: { budget: { maxTokens: 90_000 } }, turn: {}, life: undefined, sent: 4_096 },
      { limit: "its turn", options: {}, turn: { budget: { maxTokens: 90_000 } }, life: undefined, sent: 4_096 },
      { limit: "its life", options: {}, turn: {}, life: { maxTokens: 90_000 }, sent: 4_096 },
    ])("the bound on output is sent if a limit applies: $limit", async ({ options, turn, life, sent }) => {
      const { server, definition } = await serve(["ok"], options);
      const runtime = await stage().open({ agents: [definition] });
      const agent = await runtime.agent("worker", { agentId: "worker-1", ...(life ? { budget: life } : {}) });
      await agent.start();
      await agent.executeTurn("go", turn).result;
      expect(server.requests[0]?.body["max_completion_tokens"]).toBe(sent);
    });

    it("the bound is sent for a child under its parent's limit, clamped to what is left", async () => {
      const child = await serve(["a summary"], {}, "child");
      const lead = await serve(
        [{ toolCalls: [{ name: "child", arguments: { input: "sum up" } }] }, "the end"],
        { tools: [subagent(child.definition)], budget: { maxTokens: 6_000 }, maxOutputTokens: 2_000 },
        "lead",
      );
      const runtime = await stage().open({ agents: [lead.definition] });
      const agent = await runtime.agent("lead", { agentId: "lead-1" });
      await agent.start();
      expect((await agent.executeTurn("go").result).text).toBe("the end");
      const sent = child.server.requests[0]?.body["max_completion_tokens"];
      expect(sent).toBeTypeOf("number");
      expect(sent).toBeLessThanOrEqual(4_096);
    });

    it("F26: 429 with Retry-After, 500 and a cut stream, all within one bound", async () => {
      const { server, agent } = await started(
        [
          { status: 429, headers: { "retry-after": "3" } },
          { status: 500 },
          { deltas: ["half an ", "answer"], cutAfterChunks: 3 },
          "whole",
        ],
        { maxModelAttempts: 4 },
      );
      const turn = agent.executeTurn("go");
      const events = eventsOfTurn(turn);
      const result = await elapse(stage().clock, turn.result, 5);
      expect(result).toMatchObject({ status: "completed", text: "whole" });
      expect(server.requests).toHaveLength(4);
      const restarts = (await events).filter((event) => event.type === "step.restarted");
      expect(restarts.map(({ attempt, retryAt, at }) => [attempt, retryAt - at])).toEqual([
        [2, 3_000],
        [3, 500],
        [4, 1_000],
      ]);
      expect((await agent.getMessages()).map(({ content }) => content)).toEqual(["go", "whole"]);
    });

    it("F26: a stalled stream is cut and the call repeated", async () => {
      let asked = 0;
      const server = await startRawServer((_request, response) => {
        asked += 1;
        response.writeHead(200, { "content-type": "text/event-stream" });
        if (asked === 1) response.write(chunk({ role: "assistant", content: "half an" }));
        else response.end(chunk({ role: "assistant", content: "whole" }, "stop") + usageChunk + done);
      });
      const model = modelAt(server, { stallTimeoutMs: 25 });
      const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model })], random: () => 0 });
      const agent = await runtime.agent("worker", { agentId: "worker-1" });
      await agent.start();
      const turn = agent.executeTurn("go");
      const events = await eventsOfTurn(turn);
      expect((await turn.result).text).toBe("whole");
      expect(asked).toBe(2);
      const [restart] = events.filter((event) => event.type === "step.restarted");
      expect(restart?.error.message).toMatch(/stalled/);
    });

    it("S13: the key is in no error, event or message", async () => {
      const leak = { status: 400, errorBody: { error: { message: "bad key secret-key" } } };
      const { runtime, agent } = await started([leak]);
      const turn = agent.executeTurn("go");
      const events = await eventsOfTurn(turn);
      const result = await turn.result;
      expect(result.status).toBe("failed");
      const rows = await runtime.stores.readTree("default", "worker-1", 0, 1_000);
      expect(JSON.stringify([events, result, rows])).not.toContain("secret-key");
    });
  },
  ["memory", "sqlite, restored"],
);
