// The ReAct core by hand: a pure state machine returns the next actions; this program performs them and reports the
// results.
import { agentTransition, effectsAt, initialAgentState, type ReactInput, type ReactState } from "troupe/react";

const shelf: Readonly<Record<string, string>> = { A: "3 kg", B: "8 kg" };
const schema = JSON.stringify({ type: "object", properties: { parcel: { type: "string" } }, required: ["parcel"] });

let state: ReactState = initialAgentState({ tools: { weigh: { description: "Weighs a parcel.", schema } } });
const inputs: ReactInput[] = [];
let time = 0;
function tell(input: ReactInput): void {
  inputs.push(input);
  state = agentTransition(input)(state);
}

/** Replaces a model: it requests each parcel of the question, then adds up the results. */
function think(): void {
  const seen = { calledLlmAt: (time += 1), calledLlmOrdinal: state.ordinal };
  const done = state.reActContext.toolCallIds.map((id) => state.toolCalls[id]);
  if (done.length === 0) {
    const parcels = state.messages.at(-1)?.content.match(/\b[A-Z]\b/g) ?? [];
    const toolCalls = Object.fromEntries(
      parcels.map((parcel) => [
        `call-${parcel}`,
        { name: "weigh", parameters: JSON.stringify({ parcel }), calledAt: time },
      ]),
    );
    tell({ type: "re-act-observed", timestamp: time, ...seen, observation: { type: "continue-re-act", toolCalls } });
    return;
  }
  const answers = done.map((call) => (call?.result?.isSuccess ? call.result.content : "unknown"));
  tell({ type: "llm-message-started", timestamp: time, messageId: `m${time}` });
  tell({
    type: "llm-message-completed",
    timestamp: time,
    messageId: `m${time}`,
    content: `They weigh ${answers.join(" and ")}.`,
  });
  tell({ type: "re-act-observed", timestamp: time, ...seen, observation: { type: "complete-re-act" } });
}

function weigh(toolCallId: string): void {
  const { parcel } = JSON.parse(state.toolCalls[toolCallId]?.parameters ?? "{}") as { parcel: string };
  const content = shelf[parcel];
  const receivedAt = (time += 1);
  const result =
    content === undefined
      ? ({ isSuccess: false, error: `there is no parcel ${parcel}`, receivedAt } as const)
      : ({ isSuccess: true, content, receivedAt } as const);
  tell({ type: "tool-call-completed", timestamp: time, toolCallId, result });
}

tell({ type: "user-message-received", timestamp: time, messageId: "m0", content: "How heavy are A and B?" });
for (let due = effectsAt(state); due.callLlm || due.runTools.length > 0; due = effectsAt(state)) {
  console.log(due);
  for (const id of due.runTools) weigh(id);
  if (due.callLlm) think();
}
console.log(state.messages.map(({ role, content }) => `${role}: ${content}`).join("\n"));

// The state is the fold of its inputs: a program that keeps the inputs can replay the loop up to any point.
const replayed = inputs.reduce(
  (before, input) => agentTransition(input)(before),
  initialAgentState({ tools: state.tools }),
);
console.log(
  JSON.stringify(replayed) === JSON.stringify(state) ? "replayed: the same state" : "replayed: another state",
);
