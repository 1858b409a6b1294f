import { expect, it } from "vitest";
import { type AgentOverview, noteAgentEvent, type TroupeEvent } from "../../src/state/index.ts";

const event = (agentId: string, body: object, at = 0): TroupeEvent =>
  ({
    agentId,
    agentName: "child",
    parentAgentId: "desk",
    rootAgentId: "desk",
    sessionId: null,
    turnId: `${agentId}#1`,
    step: 1,
    at,
    cursor: null,
    ...body,
  }) as TroupeEvent;

it("agents keep the order of their first events, and earlier snapshots do not change", () => {
  const agents = new Map<string, AgentOverview>();
  for (const agentId of ["desk~2", "desk~1", "desk~2"]) {
    noteAgentEvent(agents, event(agentId, { type: "lifecycle.changed", status: "busy" }));
  }
  expect([...agents.keys()]).toEqual(["desk~2", "desk~1"]);
  const [before, other] = [agents.get("desk~1"), agents.get("desk~2")];
  noteAgentEvent(agents, event("desk~1", { type: "lifecycle.changed", status: "ready" }));
  expect([before?.status, agents.get("desk~1")?.status]).toEqual(["busy", "ready"]);
  expect(agents.get("desk~2")).toBe(other);
});

it("an event that changes nothing returns the same value, and every value is frozen", () => {
  const agents = new Map<string, AgentOverview>();
  noteAgentEvent(agents, event("desk~1", { type: "lifecycle.changed", status: "busy" }));
  const known = agents.get("desk~1");
  noteAgentEvent(agents, event("desk~1", { type: "warning", code: "x", message: "x" }));
  expect(agents.get("desk~1")).toBe(known);
  noteAgentEvent(
    agents,
    event("desk~1", { type: "request.opened", requestId: "r", kind: "approval", name: "look", prompt: "may I?" }),
  );
  const agent = agents.get("desk~1");
  for (const part of [agent, agent?.runningTools, agent?.openRequests, agent?.openRequests["r"], agent?.usage]) {
    expect(part).toBeTypeOf("object");
    expect(Object.isFrozen(part)).toBe(true);
  }
});
