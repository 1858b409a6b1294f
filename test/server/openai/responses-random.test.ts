// Random programs of an agent: the official client accepts their streams, and a client that reads them later
// reads the same.
import * as fc from "fast-check";
import type OpenAI from "openai";
import type {
  Response as ModelResponse,
  ResponseInput,
  ResponseStreamEvent,
} from "openai/resources/responses/responses";
import { askUser, type AgentDefinition, defineAgent, defineTool, subagent } from "troupe";
import { scriptedModel } from "troupe/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { amount } from "../../support/full.ts";
import { all, joined, servedAgent } from "./responses-served.ts";

const callNames = ["look", "fail", "remove", "ask_user", "show", "reader", "nobody"] as const;
const stepOf = fc.record({
  reasoning: fc.option(fc.string({ maxLength: 8 }), { nil: undefined }),
  deltas: fc.array(fc.string({ unit: "grapheme", maxLength: 6 }), { maxLength: 3 }),
  calls: fc.array(fc.constantFrom(...callNames), { minLength: 1, maxLength: 3 }),
});
const programOf = fc.record({
  steps: fc.array(stepOf, { maxLength: 3 }),
  answer: fc.array(fc.string({ unit: "grapheme", minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 3 }),
  approves: fc.boolean(),
});
type Program = typeof programOf extends fc.Arbitrary<infer T> ? T : never;

const argumentsOf = { ask_user: { question: "why?" }, reader: { input: "read" } } as const;

function agentOf({ steps, answer }: Program): AgentDefinition {
  const parameters = z.object({});
  const look = defineTool({ name: "look", description: "Looks", parameters, execute: () => "seen" });
  const fail = defineTool({
    name: "fail",
    description: "Fails",
    parameters,
    execute: () => {
      throw new Error("it failed");
    },
  });
  const remove = defineTool({
    name: "remove",
    description: "Removes",
    parameters,
    needsApproval: true,
    execute: () => "gone",
  });
  const removal = { toolCalls: [{ name: "remove", arguments: {} }] };
  const reading = scriptedModel(({ messages }) => (messages.at(-1)?.role === "tool" ? { text: "read" } : removal));
  const reader = defineAgent({ name: "reader", model: reading, tools: [remove] });
  const model = scriptedModel(({ messages }) => {
    const step = steps[messages.filter(({ role }) => role === "assistant").length];
    if (step === undefined) return { deltas: answer };
    const toolCalls = step.calls.map((name) => ({
      name,
      arguments: name === "ask_user" || name === "reader" ? argumentsOf[name] : {},
    }));
    return { reasoning: step.reasoning, deltas: step.deltas, toolCalls };
  });
  return defineAgent({
    name: "player",
    model,
    clientTools: true,
    tools: [look, fail, remove, askUser(), subagent(reader)],
  });
}

const show = {
  type: "function",
  name: "show",
  description: "Shows",
  strict: false,
  parameters: { type: "object" },
} as const;

/** Answers to all requests of a response. */
function answersTo({ status, output }: ModelResponse, approve: boolean): ResponseInput {
  if (status !== "completed") return [];
  return output.flatMap((item): ResponseInput => {
    if (item.type === "mcp_approval_request") {
      return [{ type: "mcp_approval_response", approval_request_id: item.id, approve }];
    }
    return item.type === "function_call" ? [{ type: "function_call_output", call_id: item.call_id, output: "so" }] : [];
  });
}

interface Played {
  readonly events: readonly ResponseStreamEvent[];
  readonly response: ModelResponse;
}

/** Runs a program to its end, and returns each response as it was streamed. */
async function play(client: OpenAI, approves: boolean): Promise<readonly Played[]> {
  const played: Played[] = [];
  let next: { readonly input: string | ResponseInput; readonly previous_response_id?: string } = { input: "go" };
  while (next.input.length > 0) {
    const stream = client.responses.stream({ model: "player", tools: [show], ...next });
    const events = await all(stream as AsyncIterable<ResponseStreamEvent>);
    const response = await stream.finalResponse();
    played.push({ events, response });
    next = { previous_response_id: response.id, input: answersTo(response, approves) };
  }
  return played;
}

test("any program is streamed so that the client can follow it, and reads the same later", async () => {
  await fc.assert(
    fc.asyncProperty(programOf, async (program) => {
      const { client, runtime, server } = await servedAgent(agentOf(program));
      const played = await play(client, program.approves);
      for (const { events, response } of played) {
        const last = events.at(-1);
        const isEnd = last?.type === "response.completed" || last?.type === "response.failed";
        const { output_text: _text, ...stored } = await client.responses.retrieve(response.id);
        expect([isEnd, stored]).toEqual([true, isEnd ? last.response : null]);
        const later = await all(await client.responses.retrieve(response.id, { stream: true }));
        expect(joined(later)).toEqual(joined(events));
      }
      const { status, output_text: text } = played.at(-1)?.response ?? {};
      expect(status === "failed" || text?.endsWith(program.answer.join(""))).toBe(true);
      await server.close();
      await runtime.shutdown();
    }),
    { numRuns: amount(300, 25) },
  );
});
