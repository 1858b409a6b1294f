import { type AgentContext, agentMachine } from "../../src/machines/index.ts";
import type { Entry } from "../../src/state/index.ts";
import {
  backgroundSpawned,
  budgetFreed,
  childEnded,
  childReported,
  childSpawned,
  journalOf,
  paused,
  pausing,
  refused,
  resumed,
  shutDown,
  started,
  starting,
  turnEnded,
  turnStarted,
} from "./bodies.ts";
import { type Explored, nameOf, type Path, pathsOf } from "./explored.ts";
import { cleared, contextCompacted } from "./hook-bodies.ts";
import { requestDecided, requestOpened } from "./request-bodies.ts";

const { turnId: _inTurn, ...reportedBetween } = childReported(1);

export function agentPaths(): Path[] {
  const events = journalOf([
    starting,
    started,
    turnStarted(),
    childSpawned(),
    childEnded(),
    backgroundSpawned(1),
    childReported(1, { wakes: true }),
    { ...reportedBetween, wakes: true },
    requestOpened(),
    requestDecided(),
    contextCompacted(),
    cleared,
    refused("mustWait"),
    budgetFreed,
    pausing,
    paused,
    resumed,
    turnEnded("completed"),
    turnEnded("failed"),
    turnEnded("stopped", { lifecycle: "paused" }),
    shutDown,
  ]);
  return pathsOf(agentMachine, { events, isLegal, stateKey: ({ value, context }) => [value, context] });
}

function isLegal({ value, context }: Explored, entry: Entry): boolean {
  const { openTurnId, openChildIds, openRequestIds, background, turnCount } = context as AgentContext;
  const isOpen = openTurnId !== null;
  switch (entry.type) {
    case "turn.started":
      return (value === "ready" || value === "failed") && turnCount === 0;
    case "child.spawned":
      if (entry.background) return isOpen && background.length === 0;
      return isOpen && openChildIds.length === 0;
    case "child.reported":
      return background.length > 0 && isOpen === (entry.turnId !== undefined) && value !== "shutdown";
    case "request.opened":
      return isOpen && openRequestIds.length === 0;
    case "request.decided":
      return openRequestIds.includes(entry.requestId);
    case "conversation.cleared":
      return value === "ready";
    case "agent.paused":
      return nameOf(value) === "busy.pausing";
    default:
      return isOpen || !("turnId" in entry) || entry.type.startsWith("agent.");
  }
}
