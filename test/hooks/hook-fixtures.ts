import {
  type CallResult,
  createDraft,
  type Hook,
  type HookContext,
  type OpenDraft,
  type Plugin,
  registerHooks,
} from "../../src/hooks/index.ts";
import type { HookName, Message, TraceEntry } from "../../src/state/index.ts";
import type { GenerateInput } from "../../src/tools/index.ts";

export const usage = { inputTokens: 10, outputTokens: 5 };

export function message(id: string, content = id): Message {
  return { id, role: "user", content, createdAt: 0, origin: "user" };
}

export function callResult(overrides: Partial<CallResult> = {}): CallResult {
  const call = { callId: "a#1:1:0", name: "search", arguments: '{"query":"x"}' };
  return { call, outcome: "success", text: "found it", durationMs: 12, error: null, ...overrides };
}

export const calls = [
  { callId: "a#1:1:0", name: "search", arguments: "{}" },
  { callId: "a#1:1:1", name: "delete", arguments: '{"id":' },
];
export const response = { text: "let me see", finishReason: "tool_calls", usage } as const;
export const ended = { outcome: "completed", stopReason: "completed", text: "the end" } as const;
/** A patch that changes nothing. */
export const nothing = { edited: [], removedMessageIds: [], stop: null, continueRequested: false };

export const afterLlm = () => createDraft("afterLlm", { messages: [message("m1")], response, calls });
export const beforeLlm = () =>
  createDraft("beforeLlm", {
    messages: [message("m1"), message("m2"), message("m3")],
    settings: { temperature: 1 },
    tools: ["search"],
  });
export const beforeEachTool = () =>
  createDraft("beforeEachTool", { call: { callId: "a#1:1:0", name: "search", arguments: { query: "x" } } });

/** A failed call as passed to `onError`. */
export function failedCall(message: string): CallResult {
  return callResult({
    outcome: "error",
    text: `The tool failed: ${message}`,
    error: { code: "Error", message, retryable: false },
  });
}

/** A fake run context for hooks that records their warnings and requests. */
export function fakeRun(overrides: Partial<HookContext> = {}, answer = "an answer") {
  const warnings: { code: string; message: string }[] = [];
  const requests: GenerateInput[] = [];
  const run: HookContext = {
    agent: {
      agentId: "desk-1",
      name: "desk",
      parentAgentId: null,
      rootAgentId: "desk-1",
      depth: 0,
      sessionId: null,
      tenant: "default",
      ownerId: null,
    },
    turnId: "desk-1#1",
    step: 1,
    auth: undefined,
    prompt: "find x",
    actorId: null,
    contextPercent: null,
    trace: [],
    signal: new AbortController().signal,
    async generate(request) {
      requests.push(request);
      return { content: answer, toolCalls: [], usage, finishReason: "stop", model: "fake" };
    },
    emitWarning(code, message) {
      const isNew = warnings.every((warning) => warning.code !== code);
      if (isNew) warnings.push({ code, message });
      return isNew;
    },
    ...overrides,
  };
  return { run, warnings, requests };
}

export function llmCall(step: number, inputTokens: number): TraceEntry {
  const usage = { inputTokens, outputTokens: 0, costMicros: null };
  return { type: "llm_call", turnId: "desk-1#1", step, at: 0, model: "fake", durationMs: 1, toolCallsCount: 0, usage };
}

export function toolCall(step: number, name: string, args: string, result: string): TraceEntry {
  const place = { turnId: "desk-1#1", step, at: step, callId: `desk-1#1:${step}:0` };
  return { type: "tool_execution", ...place, name, arguments: { args }, status: "success", result, durationMs: 1 };
}

/** Runs a plugin's hooks of this name one after the other, and returns the outcome. */
export async function runPlugin<Name extends HookName>(
  plugin: Plugin,
  name: Name,
  { draft, outcome }: OpenDraft<Name>,
  run: HookContext,
): Promise<ReturnType<OpenDraft<Name>["outcome"]>> {
  const hooks: readonly { readonly hook: Hook<Name> }[] = registerHooks(undefined, [plugin])[name];
  for (const { hook } of hooks) await hook(draft, run);
  return outcome();
}
