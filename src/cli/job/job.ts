import type { AgentDefinition } from "../../agents/index.ts";
import type { Budget } from "../../budget/index.ts";
import type { Runtime, RuntimeOptions } from "../../runtime/index.ts";
import type { JsonObject } from "../../state/index.ts";
import type { ViewOptions } from "../view/create-reporter.ts";
import type { Reporter } from "../view/reporter.ts";
import type { ForWorkers, Where, WhereOptions } from "./where.ts";

export interface Job extends ForWorkers {
  /** The root's definition, and others that can be started by name. */
  readonly agents: readonly [AgentDefinition, ...AgentDefinition[]];
  /** Who may decide its requests, where its file has a rule. */
  readonly mayDecide?: RuntimeOptions["mayDecide"];
  readonly rootAgentId: string;
  readonly metadata: JsonObject;
  /** What to ask when no turn is open; null goes on from what was said. */
  readonly input: string | null;
  /** Limits of that turn, in place of the definition's, name by name. */
  readonly budget?: Budget | undefined;
  /** Whether the agent is there already and its open turn is to be carried on. */
  readonly isResumed: boolean;
  readonly header: readonly string[];
  /** Command lines that a person may type next. */
  readonly resumeCommand: string;
  readonly showCommand: string;
}

export type JobOptions = ViewOptions & WhereOptions;

export interface Following {
  readonly runtime: Runtime;
  readonly job: Job;
  readonly reporter: Reporter;
  /** Whether there is a person at the terminal who can be asked. */
  readonly isInteractive: boolean;
  /** Who runs its turns. */
  readonly where: Where;
}
