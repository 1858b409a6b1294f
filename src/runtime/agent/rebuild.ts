import { type AnyMachineSnapshot, type AnyStateMachine, initialTransition, type Snapshot, transition } from "xstate";
import { liveAgentMachine, liveToolCallMachine, liveTurnMachine } from "../../actors/index.ts";
import { CorruptRecordError } from "../../errors/index.ts";
import { type AgentContext, agentContextSchema, agentHears, allCallsHear, turnHears } from "../../machines/index.ts";
import {
  addressOf,
  type AgentRecord,
  type CallState,
  declareCall,
  type Entry,
  type EntryOf,
  openCallsOf,
  type TurnState,
} from "../../state/index.ts";

type AgentSnapshot = ReturnType<typeof initialTransition<typeof liveAgentMachine>>[0];
type TurnSnapshot = ReturnType<typeof initialTransition<typeof liveTurnMachine>>[0];
type CallSnapshot = ReturnType<typeof initialTransition<typeof liveToolCallMachine>>[0];

/** A machine and its state before an entry was delivered to it. */
export interface HeardBefore {
  readonly machine: AnyStateMachine;
  readonly snapshot: AnyMachineSnapshot;
}

/**
 * Recovery: each machine is folded separately by pure transitions, and its persisted snapshot is inserted into its parent's, so
 * that starting the root runs only the effects of the current states (docs/architecture.md). The result depends only on the
 * entries.
 */
export class MachineFold {
  #agent: AgentSnapshot;
  #turn: TurnSnapshot | undefined;
  #turnId = "";
  readonly #calls = new Map<string, CallSnapshot>();
  /** Snapshots before the last entry, for the machines that received it. */
  readonly #before = new Map<string, HeardBefore>();
  turnEntries: Entry[] = [];
  /** The state in which the last turn ended. */
  lastTurnValue: unknown;

  constructor(checkpoint: AgentRecord["checkpoint"]) {
    this.#agent = checkpoint ? agentAt(checkpoint.agent) : initialTransition(liveAgentMachine)[0];
  }

  apply(entry: Entry): void {
    this.#before.clear();
    if (entry.type === "turn.started") this.#startTurn(entry);
    if (addressOf(entry).turnId === this.#turnId) this.turnEntries.push(entry);
    if (agentHears(entry)) {
      this.#before.set("", { machine: liveAgentMachine, snapshot: this.#agent });
      this.#agent = transition(liveAgentMachine, this.#agent, entry)[0];
    }
    if (this.#turn && addressOf(entry).turnId === this.#turnId) this.#applyToTurn(this.#turn, entry);
    if (entry.type !== "turn.ended") return;
    this.lastTurnValue = this.#turn?.value;
    this.#turn = undefined;
  }

  #startTurn(entry: EntryOf<"turn.started">): void {
    this.#turn = initialTransition(liveTurnMachine, { entry })[0];
    this.#turnId = entry.turnId;
    this.#calls.clear();
    this.turnEntries = [];
  }

  #applyToTurn(turn: TurnSnapshot, entry: Entry): void {
    const isHeard = turnHears(entry);
    if (isHeard) this.#before.set(this.#turnId, { machine: liveTurnMachine, snapshot: turn });
    const next = isHeard ? transition(liveTurnMachine, turn, entry)[0] : turn;
    this.#turn = next;
    if (next.value === "round" && turn.value !== "round") {
      this.#calls.clear();
      for (const { callId, name } of openCallsOf(next.context.turn)) {
        this.#calls.set(callId, initialTransition(liveToolCallMachine, { call: declareCall(callId, name) })[0]);
      }
      return;
    }
    for (const [callId, call] of this.#calls) {
      if (!hears(callId, entry)) continue;
      this.#before.set(callId, { machine: liveToolCallMachine, snapshot: call });
      this.#calls.set(callId, transition(liveToolCallMachine, call, entry)[0]);
    }
  }

  /** Only these two fields, because the declarations of the whole snapshot's type take megabytes. */
  get agent(): { readonly value: unknown; readonly context: AgentContext } {
    return this.#agent;
  }

  get turn(): TurnState | undefined {
    return this.#turn?.context.turn;
  }

  call(callId: string): CallState | undefined {
    return this.#calls.get(callId)?.context.call;
  }

  /** The state values of all machines, for comparing a fold with the live state. */
  get values(): { agent: unknown; turn: unknown; calls: Record<string, unknown> } {
    const calls = Object.fromEntries([...this.#calls].map(([callId, call]) => [callId, call.value]));
    return { agent: this.#agent.value, turn: this.#turn?.value, calls };
  }

  /** The machine and its snapshot before the last entry, by the id of a turn or call; `""` for the agent. */
  heardBefore(id: string): HeardBefore | undefined {
    return this.#before.get(id);
  }

  toSnapshot(): Snapshot<unknown> {
    const root = persisted(liveAgentMachine.getPersistedSnapshot(this.#agent));
    if (!this.#turn) return { ...root, children: {} } as unknown as Snapshot<unknown>;
    const turn = persisted(liveTurnMachine.getPersistedSnapshot(this.#turn));
    // Pure transitions never remove a child: calls of earlier rounds are over and must not start again.
    for (const childId of Object.keys(turn.children)) {
      if (childId.startsWith(`${this.#turnId}:`) && !this.#calls.has(childId)) delete turn.children[childId];
    }
    for (const [callId, call] of this.#calls) {
      const child = turn.children[callId];
      if (!child) continue;
      const { outcome, reviewDue } = call.context.call;
      // A call with its result stays until hooks have reviewed it.
      if (outcome === null || reviewDue) child.snapshot = persisted(liveToolCallMachine.getPersistedSnapshot(call));
      else delete turn.children[callId];
    }
    const held = root.children[this.#turnId];
    if (!held) throw new CorruptRecordError(`turn ${this.#turnId} is missing from the agent's children after the fold`);
    held.snapshot = turn;
    return root as unknown as Snapshot<unknown>;
  }
}

function hears(callId: string, entry: Entry): boolean {
  return allCallsHear(entry) || addressOf(entry).callId === callId;
}

interface PersistedNode {
  children: Record<string, { snapshot: unknown } | undefined>;
}

/** A copy, since the machines' own snapshots share structure. */
function persisted(snapshot: unknown): PersistedNode {
  return JSON.parse(JSON.stringify(snapshot)) as PersistedNode;
}

function agentAt(stored: unknown): AgentSnapshot {
  const parsed = stored as { value?: unknown; context?: unknown };
  const context = agentContextSchema.safeParse(parsed?.context);
  if (!context.success || typeof parsed.value !== "string" || !(parsed.value in liveAgentMachine.states)) {
    throw new CorruptRecordError("the stored checkpoint is not a state of the agent machine");
  }
  return liveAgentMachine.resolveState({ value: parsed.value as "ready", context: context.data as AgentContext });
}
