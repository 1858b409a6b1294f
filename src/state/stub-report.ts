import type { Entry } from "./entry.ts";
import type { SessionStub } from "./session-stub.ts";

/** A stub, and how often it was used. */
export type StubUse = SessionStub & {
  /** The calls of all agents of the session that it has answered. */
  readonly used: number;
};

/** A call that no stub answered. */
export interface StubMismatch {
  /** Id of the agent whose call it was. */
  readonly agentId: string;
  /** Id of the turn that it failed. */
  readonly turnId: string;
  /** Id of the call. */
  readonly callId: string;
  /** Name of the tool, which did not run. */
  readonly tool: string;
  /** Names the call, the nearest stub and what differs. */
  readonly message: string;
}

/** How the stubs of a session were used. All lists are empty for a session without stubs. */
export interface StubReport {
  /** All stubs, in their order. */
  readonly stubs: readonly StubUse[];
  /** The stubs that have answered fewer calls than their `times`; without `times`, none. */
  readonly unused: readonly StubUse[];
  /** The calls that no stub answered, oldest first. Each of them has failed its turn. */
  readonly mismatches: readonly StubMismatch[];
}

/** The report on the stubs of a session, from the entries of its whole tree. */
export function stubReportOf(
  stubs: readonly SessionStub[],
  rows: readonly { readonly agentId: string; readonly entries: readonly Entry[] }[],
): StubReport {
  const uses = stubs.map(() => 0);
  const mismatches: StubMismatch[] = [];
  for (const { agentId, entries } of rows) {
    for (const entry of entries) {
      if (entry.type !== "tool.settled") continue;
      const { turnId, callId, name, stub, error } = entry;
      if (typeof stub === "number") uses[stub] = (uses[stub] ?? 0) + 1;
      if (stub === null) mismatches.push({ agentId, turnId, callId, tool: name, message: error?.message ?? "" });
    }
  }
  const all = stubs.map((stub, index): StubUse => ({ ...stub, used: uses[index] ?? 0 }));
  return { stubs: all, unused: all.filter(({ used, times = 1 }) => used < times), mismatches };
}
