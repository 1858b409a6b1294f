import { describe, expect, test } from "vitest";
import { ChatView } from "../../../src/cli/chat/chat-view.ts";
import type { TroupeEvent } from "../../../src/state/index.ts";
import {
  completedSample,
  decidedSample,
  deltaSample,
  eventSample,
  failedSample,
  openedSample,
  stoppedSample,
} from "../support/samples.ts";

function view() {
  let text = "";
  const chat = new ChatView({
    write: (piece) => {
      text += piece;
    },
    paint: (_style, line) => line,
    rootAgentId: "ask-mibodu",
    columns: () => 60,
  });
  return { chat, text: () => text };
}

function shown(...events: readonly TroupeEvent[]): string {
  const { chat, text } = view();
  for (const event of events) chat.event(event);
  return text();
}

const delta = deltaSample;
const snapshot = (text: string) =>
  eventSample({
    type: "text.snapshot",
    text,
    offset: text.length,
    reasoning: null,
    attempt: 1,
    after: null,
    cursor: null,
  });
const step = eventSample({ type: "step.started", model: "m" });
const tool = eventSample({ type: "tool.completed", callId: "c", name: "pay", durationMs: 5 });
const below = (event: TroupeEvent): TroupeEvent => ({ ...event, agentId: "ask-mibodu~3fa9c1d2", agentName: "reader" });

describe("a chat shows", () => {
  test("the missed start of an answer, and all of it again after other output", () => {
    expect(shown(step, delta("It is "), snapshot("It is so. "), delta("(a.md:1)", 10), completedSample())).toBe(
      "It is so. (a.md:1)\n",
    );
    expect(shown(step, delta("Perhaps "), snapshot("It is so. "), delta("(a.md:1)", 10), completedSample())).toBe(
      "Perhaps \nIt is so. (a.md:1)\n",
    );
  });

  test("the text as it comes, and not again at the end", () => {
    expect(shown(step, delta("\n\nIt is so. "), delta("(a.md:1)"), completedSample())).toBe("It is so. (a.md:1)\n");
  });

  test("the whole text of a model that does not stream, or that was interrupted by tool calls", () => {
    expect(shown(step, completedSample())).toBe("It is so. (a.md:1)\n");
    expect(shown(step, delta("Let me see."), tool, step, completedSample())).toBe(
      "Let me see.\n  · pay took 5 ms\nIt is so. (a.md:1)\n",
    );
  });

  test("why there is no answer", () => {
    expect(shown(step, stoppedSample())).toContain("Stopped: token_limit");
    expect(shown(step, failedSample())).toContain("Failed: no\nroute (model_error)");
  });

  test("the activity of subagents, each line with the name, but not their text", () => {
    expect(shown(below(delta("hidden")), below(tool), below(completedSample()))).toBe(
      "  · reader ~3fa9c1: pay took 5 ms\n  · reader ~3fa9c1: done after 3 steps\n",
    );
  });

  test("decisions, but not a question that is asked anyway", () => {
    const waits = eventSample({ type: "turn.waiting", reason: "request" });
    expect(shown(openedSample(), waits, decidedSample())).toBe("  · pay was approved by anna\n");
  });

  test("nothing while a person is asked, and then all of it", () => {
    const { chat, text } = view();
    chat.event(delta("It"));
    const release = chat.hold();
    expect(text()).toBe("It\n");
    chat.event(tool);
    chat.say("Approve?");
    expect(text()).toBe("It\nApprove?\n");
    release();
    expect(text()).toBe("It\nApprove?\n  · pay took 5 ms\n");
  });

  test("no escape sequences of a model", () => {
    expect(shown(delta("\u001B[2Jgone\u0007"))).toBe("gone");
  });
});
