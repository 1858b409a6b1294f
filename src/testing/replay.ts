import { type AgentDefinition, collectDefinitions, definitionRule } from "../agents/index.ts";
import {
  describeValue,
  listRule,
  oneOfRule,
  type OptionsSchema,
  optionsOf,
  portRule,
  reading,
  textRule,
  wholeNumberRule,
} from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { StoredDefinition } from "../state/index.ts";
import { differenceOf } from "./compare-requests.ts";
import {
  type RecordedAgent,
  type Recording,
  type RecordingSource,
  readRecording,
  type StoredRecording,
} from "./recording.ts";
import {
  AgentReplay,
  type DivergedPart,
  type NotCompared,
  placeOf,
  type ReplayRules,
  type ReplayTally,
} from "./replay-agent.ts";

/** Options of `replay()`. */
export interface ReplayOptions {
  /** The definitions of today. Subagents of these are included; other agents that tools spawn must be listed. */
  readonly agents: AgentDefinition | readonly AgentDefinition[];
  /**
   * Whether hooks, compaction strategies and functions of `needsApproval` run again (`run`), or their recorded results count (`recorded`).
   * Instructions, history compilers and schemas always run. Default `run`.
   */
  readonly hooks?: "run" | "recorded" | undefined;
  /** The longest time that one of them may take, in milliseconds. Default 10,000. */
  readonly timeoutMs?: number | undefined;
}

/** What a replay has compared. */
export interface ReplayComparison {
  /** Id of the root agent. */
  readonly rootAgentId: string;
  /** Agents of the tree. */
  readonly agents: number;
  /** Turns of all of them. */
  readonly turns: number;
  /** Model requests: messages, tools, settings, response format and model. */
  readonly requests: number;
  /** Runs of hooks and compactions. */
  readonly hooks: number;
  /** Tool calls: arguments, effect class, approval, and verdict. */
  readonly calls: number;
  /** What could not be compared, with the number of its occurrences. */
  readonly notCompared: Readonly<Partial<Record<NotCompared, number>>>;
  /** Texts of the recording that were redacted; each equals any text. */
  readonly redacted: number;
  /** Parts of definitions that differ although they change no request: `lead: limits`. */
  readonly changed: readonly string[];
}

/** The first difference between a recorded run and its repetition. */
export interface ReplayDivergence {
  /** Where it is. */
  readonly divergedAt: {
    readonly agentName: string;
    readonly agentId: string;
    /** From 1; 0 before the first turn. */
    readonly turn: number;
    /** From 1; 0 at the start of the turn. */
    readonly step: number;
  };
  /** The part of the run that differs. */
  readonly part: DivergedPart;
  /** The recorded value. */
  readonly expected: unknown;
  /** The value of today. */
  readonly got: unknown;
  /** A unified diff: `-` is the recorded line, `+` the line of today. */
  readonly diff: string;
}

/** The result of a replay. */
export type ReplayResult = ReplayComparison &
  ({ readonly isEqual: true } | ({ readonly isEqual: false } & ReplayDivergence));

/**
 * Replays a recorded run: steps it through the machines of its agents, in the recorded order, and repeats at each point what the definitions of
 * today determine: prompts, tools, settings, hooks, arguments. Answers, results and decisions are the recorded ones: no model is called, no tool
 * runs, and nothing is stored.
 *
 * @param source A tree in stores, or the path of a file that `troupe export ID --json FILE` wrote.
 * @throws InvalidInputError for invalid options, and for a file that is not an exported run.
 * @throws NotFoundError if the stores have no such agent.
 * @throws UnsupportedError for a file without texts.
 */
export async function replay(source: RecordingSource, given: ReplayOptions): Promise<ReplayResult> {
  const rules = rulesOf(given, "replay()");
  return await replayRecording(await readRecording(checkedSource(source, "replay()")), rules);
}

const DEFAULT_TIMEOUT_MS = 10_000;

/** Rules of the options that all replays share. */
export const replayRules: OptionsSchema<ReplayOptions>["rules"] = {
  agents: (value, where) =>
    Array.isArray(value)
      ? listRule("a definition made by defineAgent(), or a list of them", definitionRule)(value, where)
      : definitionRule(value, where),
  hooks: oneOfRule("run", "recorded"),
  timeoutMs: wholeNumberRule(1, 2 ** 31 - 1),
};

const replaySchema: OptionsSchema<ReplayOptions> = {
  rules: replayRules,
  needed: ["agents"],
  instead: { agent: "agents", definitions: "agents", definition: "agents" },
};

/** Checks the options of a replay. */
export function rulesOf(given: ReplayOptions, of: string, hooks: "run" | "recorded" = "run"): ReplayRules {
  const options = optionsOf<ReplayOptions>(given, of, replaySchema);
  const listed = [options.agents].flat(1) as readonly AgentDefinition[];
  return {
    definitions: collectDefinitions(listed),
    runsHooks: (options.hooks ?? hooks) === "run",
    timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
  };
}

const storedSchema: OptionsSchema<StoredRecording> = {
  rules: {
    stores: portRule("stores, for instance memoryStores()", ["readAgent", "exportTree"]),
    agentId: textRule,
    tenant: textRule,
  },
  needed: ["stores", "agentId"],
  instead: { store: "stores", id: "agentId" },
};

/** Checks a source that a caller gave. */
export function checkedSource(source: unknown, of: string): RecordingSource {
  return reading(`${of}: the run`, () => {
    if (typeof source === "string" && source !== "") return source;
    if (source instanceof URL) return source;
    if (typeof source === "object" && source !== null && !Array.isArray(source)) {
      return optionsOf<StoredRecording>(source, of, storedSchema);
    }
    throw new InvalidInputError(
      `${of} reads a file that "troupe export ID --json FILE" wrote, or { stores, agentId }; not ${describeValue(source)}`,
    );
  });
}

/** Replays a run that was read. */
export async function replayRecording(recording: Recording, rules: ReplayRules): Promise<ReplayResult> {
  const tally: ReplayTally = { requests: 0, hooks: 0, calls: 0, notCompared: new Map() };
  const agents = new Map<string, AgentReplay>();
  let divergence: ReplayDivergence | undefined;
  for (const row of recording.tree.rows) {
    const agent = recording.agent(row.agentId);
    if (!agent) continue;
    const { name } = agent.record.definition;
    const definition = rules.definitions.get(name);
    if (!definition) {
      if (!row.entries.some(({ type }) => type === "turn.started")) continue;
      divergence = missingAgent(agent, [...rules.definitions.keys()]);
      break;
    }
    let one = agents.get(agent.agentId);
    if (!one) agents.set(agent.agentId, (one = new AgentReplay(recording, agent, { definition, rules, tally })));
    const outcome = await one.row(row);
    if (!outcome) continue;
    const { part, expected, got, diff } = outcome.found;
    const divergedAt = { agentName: name, agentId: agent.agentId, ...placeOf(outcome.entry) };
    divergence = { divergedAt, part, expected, got, diff };
    break;
  }
  const comparison: ReplayComparison = {
    rootAgentId: recording.rootAgentId,
    agents: recording.agents.length,
    turns: recording.agents.flatMap(({ entries }) => entries.filter(({ type }) => type === "turn.started")).length,
    requests: tally.requests,
    hooks: tally.hooks,
    calls: tally.calls,
    notCompared: Object.fromEntries([...tally.notCompared].toSorted(([one], [other]) => one.localeCompare(other))),
    redacted: recording.redacted,
    changed: changedParts(recording, rules),
  };
  return divergence ? { isEqual: false, ...divergence, ...comparison } : { isEqual: true, ...comparison };
}

function missingAgent({ record, agentId, entries }: RecordedAgent, names: readonly string[]): ReplayDivergence {
  const { name } = record.definition;
  const first = entries.find(({ type }) => type === "turn.started");
  const [expected, got] = [name, names.join(", ")];
  const diff = differenceOf("agent", expected, got)[0]?.diff ?? "";
  const place = first ? placeOf(first) : { turn: 0, step: 0 };
  return { divergedAt: { agentName: name, agentId, ...place }, part: "agent", expected, got, diff };
}

/** Fields of definitions that no request contains. */
const quietFields = ["limits", "maxModelAttempts", "maxConsecutiveToolFailures", "autoCompact", "maxMessages"] as const;

function changedParts({ definitions: recorded, agents }: Recording, { definitions }: ReplayRules): string[] {
  const used = new Set(agents.map(({ record }) => record.definition.hash));
  const changed = [...recorded.values()].flatMap((before) => {
    const after = definitions.get(before.name)?.stored;
    if (!after || after.hash === before.hash || !used.has(before.hash)) return [];
    const fields = quietFields.filter((field) => differenceOf(field, before[field], after[field]).length > 0);
    return [...fields, ...changedTools(before, after)].map((field) => `${before.name}: ${field}`);
  });
  return [...new Set(changed)].toSorted();
}

/** Properties of tools that no request contains. */
const quietProperties = ["effect", "endsTurn", "history"] as const;

function changedTools(before: StoredDefinition, after: StoredDefinition): string[] {
  return before.tools.flatMap((tool) => {
    const now = after.tools.find(({ name }) => name === tool.name);
    return now ? quietProperties.filter((one) => now[one] !== tool[one]).map((one) => `${one} of ${tool.name}`) : [];
  });
}
