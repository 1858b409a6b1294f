import { type Entry, foldTurn, noHooks, startTurn, type TurnState } from "../state/index.ts";

let lastFold: { readonly context: TurnState; readonly event: Entry; readonly next: TurnState } | undefined;

/** The turn after this entry. Guards and the action that follows them ask for the same fold: it is made once. */
export function after(context: TurnState, event: Entry): TurnState {
  if (lastFold?.context !== context || lastFold.event !== event) {
    lastFold = { context, event, next: foldTurn(context, event) };
  }
  return lastFold.next;
}

/** Context of a machine that was made without input, as pure transitions make it. */
export const unborn = startTurn({
  type: "turn.started",
  seq: 1,
  at: 0,
  epoch: 1,
  turnId: "",
  number: 1,
  inputMessageIds: [],
  actorId: null,
  definition: { name: "", hash: "" },
  model: { name: "", provider: "" },
  tools: [],
  limits: {},
  accountId: "",
  maxConsecutiveToolFailures: 1,
  hooks: noHooks,
});
