import type { TroupeEvent, TroupeEventBody } from "../../src/state/index.ts";

export const start = Date.UTC(2026, 0, 1, 9);

export interface Teller {
  /** Advances the time, in milliseconds. */
  pass(ms: number): void;
  tell(body: TroupeEventBody, step?: number | null): TroupeEvent;
}

/** Creates the events of one agent, each with the next cursor. */
export function teller(clock: { at: number; row: number }, who: Partial<TroupeEvent> & { agentId: string }): Teller {
  return {
    pass: (ms) => {
      clock.at += ms;
    },
    tell: (body, step = null) => {
      clock.row += 1;
      return {
        agentName: "lead",
        parentAgentId: null,
        rootAgentId: who.agentId,
        sessionId: null,
        turnId: `${who.agentId}#1`,
        step,
        at: clock.at,
        cursor: `${clock.row}.1.0`,
        ...who,
        ...body,
      } as TroupeEvent;
    },
  };
}

export const end = {
  stopReason: "completed",
  text: "the answer",
  steps: 2,
  toolCalls: 1,
  usage: { inputTokens: 30, outputTokens: 12 },
  costMicros: 420,
  message: null,
} as const;

export const failure = { code: "model_error", message: "the model is away", retryable: true };

/** The lead's call that spawned the reader. */
const spawningCall = "desk#1:1:0";

/** A lead that calls a reader, which calls a tool that fails; both end. */
export function leadAndReader(): TroupeEvent[] {
  const clock = { at: start, row: 0 };
  const lead = teller(clock, { agentId: "desk" });
  const reader = teller(clock, {
    agentId: "desk~1234abcd",
    agentName: "reader",
    parentAgentId: "desk",
    rootAgentId: "desk",
    turnId: "desk~1234abcd#1",
  });
  const events: TroupeEvent[] = [];
  const say = (who: Teller, ms: number, body: TroupeEventBody, step?: number): void => {
    who.pass(ms);
    events.push(who.tell(body, step ?? null));
  };
  const answer = {
    type: "model.responded",
    model: "gpt-5-2026",
    usage: end.usage,
    costMicros: 420,
    durationMs: 100,
  } as const;
  say(lead, 0, { type: "turn.started", number: 1, prompt: "Compare the papers" });
  say(lead, 1, { type: "step.started", model: "gpt-5" }, 1);
  say(lead, 100, { ...answer, toolCalls: 1 }, 1);
  say(
    lead,
    2,
    { type: "subagent.spawned", callId: spawningCall, childId: "desk~1234abcd", definition: "reader", mode: "await" },
    1,
  );
  say(reader, 1, { type: "turn.started", number: 1, prompt: "paper A" });
  say(reader, 0, { type: "step.started", model: "gpt-5-mini" }, 1);
  say(reader, 10, { type: "step.restarted", attempt: 2, error: failure, retryAt: clock.at + 50 }, 1);
  say(reader, 150, { ...answer, model: "gpt-5-mini", toolCalls: 1 }, 1);
  const call = { callId: "desk~1234abcd#1:1:0", name: "fetch_page" };
  say(reader, 1, { type: "tool.started", ...call, attempt: 1 }, 1);
  say(
    reader,
    20,
    { type: "tool.failed", ...call, outcome: "error", durationMs: 20, error: { ...failure, code: "offline" } },
    1,
  );
  say(reader, 5, { type: "turn.completed", ...end, text: "A says yes", costMicros: null });
  const ended = { childId: "desk~1234abcd", outcome: "completed", stopReason: "completed" } as const;
  say(lead, 1, { type: "subagent.ended", mode: "await", ...ended }, 1);
  say(lead, 1, { type: "tool.completed", callId: "desk#1:1:0", name: "reader", durationMs: 190 }, 1);
  say(lead, 8, { type: "turn.completed", ...end });
  return events;
}
