import { z } from "zod";
import { InvalidInputError } from "../../errors/index.ts";
import type { Json } from "../../state/index.ts";

/*
 * Simulated programs: what the model answers, what people and others do, and when the process dies. A program is plain data:
 * it is drawn from a seed, played, shrunk, and printed as a test.
 */

/** A tool call in an answer of the simulated model. */
export interface SimulatedProgramCall {
  /** Name of the tool or subagent. */
  readonly tool: string;
  /** The arguments; a text is sent as it is, also if it is not JSON. */
  readonly arguments: Json;
}

/** One answer of the simulated model. After the last one of a turn the model ends the turn with a text. */
export interface SimulatedAnswer {
  /** The calls of the answer; they run in parallel. */
  readonly calls: readonly SimulatedProgramCall[];
  /** How many times the provider fails before it gives this answer. Default 0. */
  readonly failures?: number | undefined;
}

/** A turn of the root agent. */
export interface SimulatedTurn {
  /** The input of the turn. */
  readonly input: string;
  /** The answers of the model, in order. */
  readonly answers: readonly SimulatedAnswer[];
  /** Whether the turn is sent while the turns before it are still open. */
  readonly isQueued: boolean;
}

/** What people answer to a request. `both`: one approves and another rejects at the same time. */
export const decisionNames = ["approve", "reject", "both"] as const;
export type SimulatedDecision = (typeof decisionNames)[number];

/** Actions of others on the root agent, and of a time server on the clock. */
export const actNames = ["abort", "pause", "restart", "clock forward", "clock back"] as const;
/** An action at the `at`-th time that the agent's model is asked or a tool begins. */
export interface SimulatedAct {
  /** The count of such touches, from 1. */
  readonly at: number;
  /** The action; the clock is set by one hour. */
  readonly does: (typeof actNames)[number];
}

/** Where a process can die. */
export const momentNames = [
  "before commit",
  "after commit",
  "model asked",
  "tool begun",
  "effect",
  "tool ended",
] as const;
/** The process dies when it passes the moment for the `hit`-th time. The process that continues may die too. */
export interface SimulatedDeath {
  /** The moment: around a commit of the agents, a call of the model, or a run of a tool. */
  readonly at: (typeof momentNames)[number];
  /** How many times the process passes the moment, from 1, until it dies there. */
  readonly hit: number;
}

/** What `simulate()` plays: made from a seed, or given by a test. */
export interface SimulatedProgram {
  /** The turns of the root agent. */
  readonly turns: readonly SimulatedTurn[];
  /** The answers in each turn of subagents, by the name of their definition. Default: a text at once. */
  readonly subagents: Readonly<Record<string, readonly SimulatedAnswer[]>>;
  /** The decisions on requests in the order in which they are opened, from the start again after the last. Default: approve. */
  readonly decisions: readonly SimulatedDecision[];
  /** Actions of others. */
  readonly acts: readonly SimulatedAct[];
  /** The deaths of the processes, in order. */
  readonly deaths: readonly SimulatedDeath[];
}

const callSchema = z.strictObject({ tool: z.string(), arguments: z.json() });
const answersSchema = z.array(z.strictObject({ calls: z.array(callSchema), failures: z.int().min(0).optional() }));
const programSchema = z.strictObject({
  turns: z.array(z.strictObject({ input: z.string(), answers: answersSchema, isQueued: z.boolean() })),
  subagents: z.record(z.string(), answersSchema),
  decisions: z.array(z.enum(decisionNames)),
  acts: z.array(z.strictObject({ at: z.int().min(1), does: z.enum(actNames) })),
  deaths: z.array(z.strictObject({ at: z.enum(momentNames), hit: z.int().min(1) })),
});

/** The rule of an option whose value is a program. Returns a copy. */
export function programRule(value: unknown, where: string): SimulatedProgram {
  const parsed = programSchema.safeParse(value);
  if (parsed.success) return parsed.data as SimulatedProgram;
  const [issue] = parsed.error.issues;
  const path = issue?.path.map(String).join(".") ?? "";
  throw new InvalidInputError(
    `${where}${path === "" ? "" : `.${path}`}: ${issue?.message}; expected a program as simulate() reports it`,
  );
}
