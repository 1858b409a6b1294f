import { describe, expect, it, vi } from "vitest";
import { InvariantError } from "../../src/errors/index.ts";
import { AgentStatusView } from "../../src/runtime/agent/actor-tree.ts";
import { type KeptLease, Placements } from "../../src/runtime/placement/placements.ts";

interface Live {
  readonly key: { readonly tenant: string; readonly agentId: string };
}

const activation: Live = { key: { tenant: "default", agentId: "a" } };
const earlier: Live = { key: activation.key };
const attempt = Promise.resolve(activation);

function arrived(): Placements<Live> {
  const agents = new Placements<Live>();
  agents.send("a", { type: "activation.started" }, { attempt });
  agents.send("a", { type: "activation.succeeded" }, { activation });
  return agents;
}

describe("placements of the agents in a process", () => {
  it("refuses a second activation of an agent, and the end of an activation that never started", () => {
    const agents = arrived();
    expect(() => agents.send("a", { type: "activation.started" }, { attempt })).toThrow(InvariantError);
    expect(() => agents.send("b", { type: "activation.succeeded" }, { activation })).toThrow(
      'unexpected event for an agent in state "away" of this process: "activation.succeeded"',
    );
    expect(agents.get("a")).toBe(activation);
  });

  it("ignores reports of an earlier activation", () => {
    const agents = arrived();
    expect(agents.report(earlier, { type: "lost" })).toEqual([]);
    expect(agents.get("a")).toBe(activation);
    agents.report(activation, { type: "lost" });
    expect(agents.get("a")).toBeUndefined();
  });

  it("resolves the wait for an absent agent in the next tick", async () => {
    const agents = new Placements<Live>();
    const rest = agents.rest("a");
    expect(agents.waiters).toBe(1);
    await expect(rest).resolves.toBe("gone");
    expect(agents.waiters).toBe(0);
  });

  it("resolves all waits for one agent together", async () => {
    const agents = arrived();
    const rests = [agents.rest("a"), agents.rest("a")];
    expect(agents.waiters).toBe(1);
    agents.send("a", { type: "handle.opened" });
    await expect(Promise.all(rests)).resolves.toEqual(["waits", "waits"]);
  });

  it("returns the current activation, and waits while it may be leaving", async () => {
    const agents = new Placements<Live>();
    agents.send("a", { type: "activation.started" }, { attempt });
    await expect(agents.present("a")).resolves.toBe(activation);
    agents.send("a", { type: "activation.succeeded" }, { activation });
    const { promise: over, resolve } = Promise.withResolvers<void>();
    agents.report(activation, { type: "leave.started", isShutDown: true }, { over });
    expect(agents.isShutDown("a")).toBe(true);
    const present = agents.present("a");
    agents.report(activation, { type: "leave.ended" });
    resolve();
    await expect(present).resolves.toBeUndefined();
    expect(agents.isShutDown("a")).toBe(true);
    expect(agents.isFree("a")).toBe(true);
  });

  it("keeps the lease of a passive agent until the agent is live again or lost, and then lets the process exit", () => {
    const agents = arrived();
    const letGo = vi.fn<() => void>();
    const lease: KeptLease = { key: activation.key, epoch: 1, standing: new AgentStatusView(), untaken: [], letGo };
    agents.report(activation, { type: "passivated" }, { lease });
    expect(agents.leaseOf("a")).toBe(lease);
    expect(agents.all()).toEqual([]);
    agents.send("a", { type: "activation.started" }, { attempt });
    agents.send("a", { type: "activation.failed", keepsLease: true });
    expect(agents.leases()).toEqual([lease]);
    expect(letGo).not.toHaveBeenCalled();
    agents.send("a", { type: "activation.started" }, { attempt });
    agents.send("a", { type: "activation.succeeded" }, { activation });
    expect(letGo).toHaveBeenCalledOnce();
    expect(agents.leases()).toEqual([]);
  });

  it("keeps no lease of an agent that could not be passivated", () => {
    const agents = arrived();
    agents.send("a", { type: "delivery.started" });
    const letGo = vi.fn<() => void>();
    const lease: KeptLease = { key: activation.key, epoch: 1, standing: new AgentStatusView(), untaken: [], letGo };
    agents.report(activation, { type: "passivated" }, { lease });
    expect(agents.get("a")).toBe(activation);
    expect(letGo).toHaveBeenCalledOnce();
  });
});
