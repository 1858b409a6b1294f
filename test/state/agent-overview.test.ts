import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { type AgentOverviews, agentsAfter, noAgents, type TroupeEvent } from "../../src/state/index.ts";

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

/** The events of a step of each agent, interleaved. */
const stepOf = (count: number): TroupeEvent[] => {
  const ids = Array.from({ length: count }, (_, index) => `desk~${index}`);
  const bodies = [
    { type: "lifecycle.changed", status: "busy" },
    { type: "turn.started", number: 1, prompt: "go" },
    { type: "step.started", model: "m" },
    { type: "tool.started", callId: "c", name: "look", attempt: 1 },
    { type: "tool.completed", callId: "c", name: "look", durationMs: 1 },
  ];
  return bodies.flatMap((body) => ids.map((agentId) => event(agentId, body)));
};

/** The agents that two versions do not share. */
const changed = (before: AgentOverviews, after: AgentOverviews): number =>
  [...after.entries()].filter(([agentId, agent]) => before.get(agentId) !== agent).length;

it("an event changes its own agent, however many others there are", () => {
  for (const count of [10, 2_000]) {
    let agents = noAgents;
    let most = 0;
    for (const [index, one] of stepOf(count).entries()) {
      const after = agentsAfter(agents, one);
      if (index % 97 === 0) most = Math.max(most, changed(agents, after));
      agents = after;
    }
    expect(most).toBe(1);
    expect(agents.size).toBe(count);
  }
});

it("any moment can be kept and folded on from", () => {
  const events = stepOf(50);
  const keyframes = new Map<number, AgentOverviews>();
  let agents = noAgents;
  for (const [index, one] of events.entries()) {
    if (index % 40 === 0) keyframes.set(index, agents);
    agents = agentsAfter(agents, one);
  }
  for (const [index, keyframe] of keyframes) {
    expect(keyframe.record()).toEqual(events.slice(0, index).reduce(agentsAfter, noAgents).record());
    expect(events.slice(index).reduce(agentsAfter, keyframe).record()).toEqual(agents.record());
  }
});

it("an event that changes nothing gives the same value, and all that is given is frozen", () => {
  const agents = stepOf(3).reduce(agentsAfter, noAgents);
  expect(agentsAfter(agents, event("desk~1", { type: "warning", code: "x", message: "x" }))).toBe(agents);
  const opened = agentsAfter(
    agents,
    event("desk~1", { type: "request.opened", requestId: "r", kind: "approval", name: "look", prompt: "may I?" }),
  );
  const agent = opened.get("desk~1");
  for (const part of [agent, agent?.runningTools, agent?.openRequests, agent?.openRequests["r"], agent?.usage]) {
    expect(part).toBeTypeOf("object");
    expect(Object.isFrozen(part)).toBe(true);
  }
});

it("a page can import the fold: it needs neither Node nor any package", () => {
  const seen = new Set<string>();
  const packages: string[] = [];
  const visit = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const [, from = ""] of readFileSync(file, "utf8").matchAll(
      /^(?:import|export)(?! type)[^;]*? from "([^"]+)";/gmu,
    )) {
      if (from.startsWith(".")) visit(join(dirname(file), from));
      else packages.push(`${file}: ${from}`);
    }
  };
  for (const name of ["agent-overview", "events-of", "agent-ids"]) visit(join("src/state", `${name}.ts`));
  expect(packages).toEqual([]);
  expect([...seen].toSorted()).toEqual(
    ["agent-ids", "agent-overview", "events-of", "limit-reached", "persistent-map"].map(
      (name) => `src/state/${name}.ts`,
    ),
  );
});
