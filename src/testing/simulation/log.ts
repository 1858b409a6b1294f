import type { EffectClass, Json } from "../../state/index.ts";
import type { SimulatedDeath } from "./program.ts";

/** Something that happened outside: the world reported it. */
export interface SimulatedEffect {
  /** What happened, in the words of the world. */
  readonly name: string;
  /** What was asked for; `null` if the world gave none. */
  readonly details: Json;
  /** The tool whose call caused it; `null` if no call did. */
  readonly tool: string | null;
  /** The call that caused it; `null` if no call did. */
  readonly callId: string | null;
}

/** One run of a tool's code. */
export interface ToolRun {
  readonly tool: string;
  readonly effect: EffectClass;
  readonly callId: string;
  readonly agentName: string;
  readonly args: unknown;
  readonly needsApproval: boolean;
  readonly timeoutMs: number;
  /** How its code ended; `undefined` while it runs, or if its process died. */
  end?: "returned" | "threw";
  error?: string;
  /** Whether its process died while it ran. */
  isKilled?: true;
  /** Whether it was still running at the end of its time. */
  isOverdue?: true;
  readonly effects: { readonly effect: SimulatedEffect; readonly isLate: boolean }[];
}

/** What people did with a request. */
export interface DecidedRequest {
  readonly callId: string;
  readonly tool: string;
  readonly kind: string;
  readonly arguments: Json;
  /** The verdicts that were accepted, in order. */
  readonly accepted: string[];
}

/** A prompt that the model got. */
export interface AskedPrompt {
  /** The turn and the step. */
  readonly place: string;
  readonly agentName: string;
  readonly lines: readonly string[];
}

/** What happened in one play of a program, in all its processes. */
export interface SimulationLog {
  readonly effects: SimulatedEffect[];
  readonly runs: ToolRun[];
  readonly requests: Map<string, DecidedRequest>;
  readonly prompts: AskedPrompt[];
  /** Failures of the provider that are still to come, by step. */
  readonly failuresLeft: Map<string, number>;
  /** Unexpected errors, in words. */
  readonly faults: string[];
  /** How often the model was asked or a tool began. */
  touches: number;
  /** How many actions of others were performed. */
  acts: number;
  deaths: number;
  /** How often the processes passed each moment at which they can die. */
  readonly passes: Record<SimulatedDeath["at"], number>;
}

export function emptyLog(): SimulationLog {
  return {
    effects: [],
    runs: [],
    requests: new Map(),
    prompts: [],
    failuresLeft: new Map(),
    faults: [],
    touches: 0,
    acts: 0,
    deaths: 0,
    passes: { "before commit": 0, "after commit": 0, "model asked": 0, "tool begun": 0, effect: 0, "tool ended": 0 },
  };
}
