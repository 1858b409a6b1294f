import {
  type FoldedReact,
  type ReactInput,
  type ReactState,
  type ReactStep,
  reactStateSchema,
} from "../../../src/state/react/index.ts";

/** The ReAct state of a turn's fold in its public form. */
export function stateOf({ toolCalls, ...state }: FoldedReact): ReactState {
  return reactStateSchema.parse({
    ...state,
    toolCalls: Object.fromEntries(toolCalls.map(({ id, ...one }) => [id, one])),
  });
}

/** An input of a turn's fold in its public form. */
export function inputOf(step: ReactStep): ReactInput {
  if (step.type !== "re-act-observed") return step;
  const { calls, ...observed } = step;
  if (calls === null) return { ...observed, observation: { type: "complete-re-act" } };
  return { ...observed, observation: { type: "continue-re-act", toolCalls: Object.fromEntries(calls) } };
}
