import type { AgentDefinition } from "../agents/index.ts";
import { definitionIn } from "../context/index.ts";
import {
  type OptionsSchema,
  functionRule,
  optionsOf,
  optionsIn,
  portRule,
  reading,
  textRule,
  wholeNumberRule,
} from "../base/index.ts";
import { DEFAULT_TENANT, openCallsOf, turnOf, entriesOfTurn } from "../state/index.ts";
import type { Stores } from "../stores/index.ts";
import { readRecording, type Recording } from "./recording.ts";
import { type ReplayDivergence, type ReplayOptions, replayRecording, replayRules, rulesOf } from "./replay.ts";
import type { DivergedPart, ReplayRules } from "./replay-agent.ts";

/** Options of `checkUpgrade()`. */
export interface CheckUpgradeOptions extends Pick<ReplayOptions, "agents" | "hooks" | "timeoutMs"> {
  /** How many of the newest runs are checked. Default 500. */
  readonly last?: number | undefined;
  /** Default: the tenant of runtimes without one. */
  readonly tenant?: string | undefined;
  /** Called after each run. Default: nothing. */
  readonly onProgress?: ((progress: { readonly done: number; readonly of: number }) => void) | undefined;
}

/** Runs that differ for the same reason. */
export interface UpgradeDifference {
  /** The part that differs first. */
  readonly part: DivergedPart;
  /** The agent whose definition causes it. */
  readonly agentName: string;
  /** Number of runs. */
  readonly runs: number;
  /** Of the first difference in each run, how many are in that step. */
  readonly bySteps: Readonly<Record<string, number>>;
  /** The newest of these runs. */
  readonly sample: Pick<ReplayDivergence, "divergedAt" | "diff"> & { readonly rootAgentId: string };
}

/** A turn that is open, and what the definitions of today mean for it. */
export interface OpenTurnCheck {
  /** The root agent of its run. */
  readonly rootAgentId: string;
  /** The agent whose turn is open. */
  readonly agentId: string;
  /** The name of its definition. */
  readonly agentName: string;
  /** The open turn. */
  readonly turnId: string;
  /** `goes on`: it continues under the definitions of today. Otherwise it cannot, or a call of it ends as `not_found`. */
  readonly verdict: "goes on" | "lacks a tool" | "lacks its agent";
  /** Tools of open calls that the definition no longer has. */
  readonly tools: readonly string[];
  /** Whether its definition has changed, so that it continues with the warning `definition_changed`. */
  readonly isChanged: boolean;
}

/** The result of `checkUpgrade()`. */
export interface UpgradeReport {
  /** Number of checked runs. */
  readonly runs: number;
  /** Runs whose agents ask the same as recorded. */
  readonly same: number;
  /** Runs whose agents ask something else. */
  readonly different: number;
  /** Most frequent first. */
  readonly differences: readonly UpgradeDifference[];
  /** Runs that cannot be read, with the reason. */
  readonly unreadable: readonly { readonly rootAgentId: string; readonly reason: string }[];
  /** All open turns of these runs. */
  readonly openTurns: readonly OpenTurnCheck[];
  /** Parts of definitions that differ although they change no request, with the number of runs: `lead: limits`. */
  readonly changed: Readonly<Record<string, number>>;
}

const upgradeSchema: OptionsSchema<CheckUpgradeOptions> = {
  rules: {
    ...replayRules,
    last: wholeNumberRule(1),
    tenant: textRule,
    onProgress: functionRule,
  },
  needed: ["agents"],
  instead: { agent: "agents", definitions: "agents", limit: "last" },
};

const storesRule = portRule("stores, for instance memoryStores()", ["listAgents", "readAgent", "exportTree"]);
const DEFAULT_LAST = 500;

/**
 * Checks the newest stored runs against the definitions of today, without a model call, an effect or a write: which runs ask the same, which ask
 * something else and from which step on, and which open turns lack a tool or their agent. Hooks, compaction strategies and functions of
 * `needsApproval` do not run unless `hooks` is `run`; instructions, history compilers and schemas do.
 *
 * @throws InvalidInputError for invalid options.
 */
export async function checkUpgrade(stores: Stores, given: CheckUpgradeOptions): Promise<UpgradeReport> {
  reading("checkUpgrade(): stores", () => storesRule(stores, "checkUpgrade(): stores"));
  const options = optionsOf<CheckUpgradeOptions>(given, "checkUpgrade()", upgradeSchema);
  const { last = DEFAULT_LAST, tenant = DEFAULT_TENANT, onProgress } = options;
  const rules = rulesOf(optionsIn(options, replayRules), "checkUpgrade()", "recorded");
  const roots = await newestRoots(stores, tenant, last);
  const report = new ReportBuilder(rules);
  for (const [index, rootAgentId] of roots.entries()) {
    await report.add(rootAgentId, () => readRecording({ stores, agentId: rootAgentId, tenant }));
    onProgress?.({ done: index + 1, of: roots.length });
  }
  return report.built();
}

async function newestRoots(stores: Stores, tenant: string, last: number): Promise<readonly string[]> {
  const roots = await stores.listAgents({ tenant, rootsOnly: true, order: "newest", limit: last });
  return roots.map(({ agentId }) => agentId);
}

class ReportBuilder {
  readonly #rules: ReplayRules;
  readonly #differences = new Map<string, { -readonly [Name in keyof UpgradeDifference]: UpgradeDifference[Name] }>();
  readonly #unreadable: UpgradeReport["unreadable"][number][] = [];
  readonly #openTurns: OpenTurnCheck[] = [];
  readonly #changed = new Map<string, number>();
  #runs = 0;
  #same = 0;

  constructor(rules: ReplayRules) {
    this.#rules = rules;
  }

  async add(rootAgentId: string, read: () => Promise<Recording>): Promise<void> {
    this.#runs += 1;
    try {
      const recording = await read();
      const result = await replayRecording(recording, this.#rules);
      for (const part of result.changed) this.#changed.set(part, (this.#changed.get(part) ?? 0) + 1);
      this.#openTurns.push(...openTurnsOf(recording, this.#rules.definitions));
      if (result.isEqual) this.#same += 1;
      else this.#note(rootAgentId, result);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#unreadable.push({ rootAgentId, reason });
    }
  }

  #note(rootAgentId: string, { divergedAt, part, diff }: ReplayDivergence): void {
    const { agentName, step } = divergedAt;
    const key = `${part} ${agentName}`;
    const known = this.#differences.get(key);
    if (!known) {
      const sample = { rootAgentId, divergedAt, diff };
      this.#differences.set(key, { part, agentName, runs: 1, bySteps: { [step]: 1 }, sample });
      return;
    }
    known.runs += 1;
    known.bySteps = { ...known.bySteps, [step]: (known.bySteps[step] ?? 0) + 1 };
  }

  built(): UpgradeReport {
    const differences = [...this.#differences.values()].toSorted((one, other) => other.runs - one.runs);
    return {
      runs: this.#runs,
      same: this.#same,
      different: this.#runs - this.#same - this.#unreadable.length,
      differences,
      unreadable: this.#unreadable,
      openTurns: this.#openTurns,
      changed: Object.fromEntries([...this.#changed].toSorted(([one], [other]) => (one < other ? -1 : 1))),
    };
  }
}

function openTurnsOf(
  { rootAgentId, agents }: Recording,
  definitions: ReadonlyMap<string, AgentDefinition>,
): OpenTurnCheck[] {
  return agents.flatMap(({ record, entries, agentId }): OpenTurnCheck[] => {
    const { openTurnId: turnId, definition: recorded } = record;
    if (turnId === null) return [];
    const definition = definitions.get(recorded.name);
    const place = { rootAgentId, agentId, agentName: recorded.name, turnId };
    if (!definition) return [{ ...place, verdict: "lacks its agent", tools: [], isChanged: true }];
    const ofTurn = entriesOfTurn(entries, turnId);
    const turn = turnOf(ofTurn);
    const [started] = ofTurn;
    const clients = (started?.type === "turn.started" && started.clientTools) || [];
    const missing = (turn ? openCallsOf(turn) : []).filter(
      ({ name }) => !definition.tools.get(name) && !clients.some((tool) => tool.name === name),
    );
    const tools = [...new Set(missing.map(({ name }) => name))];
    const before = ofTurn.flatMap((entry) => definitionIn(entry)?.hash ?? []).at(-1);
    const isChanged = before !== undefined && before !== definition.ref.hash;
    return [{ ...place, verdict: tools.length > 0 ? "lacks a tool" : "goes on", tools, isChanged }];
  });
}
