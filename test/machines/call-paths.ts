import { type CallContext, toolCallMachine } from "../../src/machines/index.ts";
import { type CallState, declareCall, type Entry, verdictsOf } from "../../src/state/index.ts";
import {
  backgroundSpawned,
  callExpired,
  callGated,
  callIdAt,
  callWaiting,
  childAwaited,
  childEnded,
  childOrdered,
  childReported,
  childSpawned,
  journalOf,
  refused,
  resumed,
  toolRetrying,
  toolSettled,
  toolStarted,
} from "./bodies.ts";
import { type Explored, type Path, pathsOf } from "./explored.ts";
import { callHookApplied, callReviewed } from "./hook-bodies.ts";
import { requestDecided, requestOpened } from "./request-bodies.ts";

export const declared: CallState = declareCall(callIdAt(0), "look");

export function callPaths(): Path[] {
  const callId = callIdAt(0);
  const events = journalOf([
    callGated(),
    callGated(0, 1, { verdict: "denied", message: "no" }),
    callGated(0, 1, { needsApproval: true }),
    callGated(0, 1, { needsApproval: true, arguments: { q: 2 }, argumentsHash: "b" }),
    requestOpened("approval"),
    requestOpened("client"),
    requestOpened("auth", 0, 2),
    requestDecided("approved"),
    requestDecided("edited"),
    requestDecided("rejected"),
    requestDecided("expired"),
    requestDecided("answered", "client"),
    requestDecided("provided", "auth", 0, 2),
    toolStarted(),
    { ...toolStarted(), arguments: { q: 1 } },
    toolRetrying(),
    toolStarted(0, 1, 2),
    { ...toolStarted(), queue: "browser" },
    childOrdered(),
    childSpawned(),
    backgroundSpawned(),
    childEnded(),
    childAwaited(),
    callWaiting(2, "all"),
    callWaiting(2, "any"),
    childReported(0),
    childReported(1),
    callExpired,
    refused("paused", "tool.started", { callId }),
    refused("budget", "tool.started", { callId }),
    { ...refused("paused", "tool.started", { callId }), arguments: { q: 1 }, effect: "none" },
    resumed,
    toolSettled(0, 1, "success"),
    toolSettled(0, 1, "outcome_unknown"),
    { ...toolSettled(0, 1, "success"), reviewDue: true },
    { ...toolSettled(0, 1, "outcome_unknown"), reviewDue: true },
    callHookApplied("onError"),
    callHookApplied("afterEachTool"),
    callReviewed(),
  ]);
  return pathsOf(toolCallMachine, { events, isLegal, stateKey, input: { call: declared } });
}

function stateKey({ value, context }: Explored): unknown {
  return [value, context];
}

function isLegal({ context }: Explored, entry: Entry): boolean {
  const { call } = context as CallContext;
  const { decision, openRequest } = call;
  if (call.outcome !== null) return isLegalReview(call, entry);
  const mayGoOn = decision === null || decision.verdict === "approved" || decision.verdict === "provided";
  const isBegun = call.startedEpoch !== null || call.queue !== null || call.ordered !== null;
  const isFree = !isBegun && !call.childId && !call.wait && openRequest === null && mayGoOn;
  const isAllowed = call.gate?.verdict === "allowed" && isFree;
  /** No gate but its intent applies, and it may still be proposed. */
  const isOpen = (call.gate === null || (call.gate.argumentsHash === "" && isAllowed)) && isFree && call.attempt === 0;
  switch (entry.type) {
    case "call.gated":
      if (decision?.verdict === "edited") return entry.argumentsHash === "b";
      return call.gate === null && entry.argumentsHash === "a";
    case "request.opened":
      return isAllowed && call.attempt === 0 && entry.requestId.endsWith(`:${call.requests + 1}`);
    case "request.decided":
      if (openRequest?.requestId !== entry.requestId || openRequest.kind !== entry.kind) return false;
      return verdictsOf[entry.kind].includes(entry.verdict);
    case "tool.started":
      // Earlier entries make no difference to a queued call; including them would multiply the paths by ten.
      if (entry.queue !== undefined && (call.requests > 0 || call.refusal !== null)) return false;
      if (entry.arguments !== undefined) return isOpen;
      return isAllowed && !isOpen && entry.attempt === call.attempt + 1;
    case "tool.retrying":
      return (call.startedEpoch !== null || call.queue !== null) && call.attempt === 1;
    case "child.ordered":
      return call.queue !== null;
    case "child.spawned":
      return isAllowed && call.attempt === 0;
    case "child.ended":
      return call.childId !== null && call.childResult === null && !call.isBackground;
    case "child.awaited":
      return call.childId === null && (call.startedEpoch !== null || call.ordered !== null);
    case "call.waiting":
      return call.startedEpoch !== null;
    case "child.reported":
      return call.wait?.openIds.includes(entry.childId) ?? false;
    case "call.expired":
      return call.wait !== null && call.wait.openIds.length > 0;
    case "intent.refused":
      if (entry.arguments !== undefined) return isOpen && call.refusal === null;
      return isAllowed && !isOpen && call.refusal === null;
    case "hook.applied":
    case "call.reviewed":
      return false;
    default:
      return true;
  }
}

/** `onError` comes before `afterEachTool`, and only if the call failed. */
function isLegalReview({ reviewDue, reviews, outcome }: CallState, entry: Entry): boolean {
  if (!reviewDue) return false;
  if (entry.type === "call.reviewed") return true;
  if (entry.type !== "hook.applied") return false;
  return reviews.length === 0 && (entry.hook === "afterEachTool" || outcome !== "success");
}
