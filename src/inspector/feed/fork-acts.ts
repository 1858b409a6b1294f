import { calledModels, type LanguageModel } from "../../model/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import type { Runtime } from "../../runtime/index.ts";
import type { ForkBody, RunReplay } from "./answers.ts";

/** How a reader of the inspector's page forks and replays the runs of a runtime. */
export interface Forks {
  /** Names of the models that its definitions have: a fork can run with any of them. */
  readonly models: readonly string[];
  /** Forks a run and resolves with the id of the fork, whose turn runs. */
  fork(runId: string, body: ForkBody): Promise<{ readonly runId: string }>;
  /** Compares a run with the definitions of the runtime. Instructions, history compilers and schemas run; no model, tool or hook does. */
  replay(runId: string): Promise<RunReplay>;
}

/** Most keys of forks that are remembered. */
const MOST_KEYS = 200;

/** Forks runs as ordinary trees of a runtime of this process. */
export function forksIn(runtime: Runtime): Forks {
  const models = modelsOf(runtime);
  const made = new Map<string, Promise<{ readonly runId: string }>>();
  return {
    models: [...models.keys()],
    fork(runId, body) {
      const key = `${runId} ${body.key}`;
      const known = made.get(key);
      if (known) return known;
      const making = forkOf(runtime, models, { runId, body });
      made.set(key, making);
      // A refused fork may be sent again with its key.
      making.catch(() => made.delete(key));
      const [oldest] = made.keys();
      if (made.size > MOST_KEYS && oldest !== undefined) made.delete(oldest);
      return making;
    },
    async replay(runId) {
      const { stores, tenant, definitions } = runtime;
      const { replay } = await import("../../testing/index.ts");
      const agents = [...definitions.values()];
      const result = await replay({ stores, tenant, agentId: runId }, { agents, hooks: "recorded" });
      const { isEqual, requests, calls, notCompared, changed } = result;
      const compared = { isEqual, requests, calls, notCompared: { ...notCompared }, changed: [...changed] };
      if (result.isEqual) return { ...compared, divergence: null };
      const { divergedAt, part, expected, got, diff } = result;
      return {
        ...compared,
        divergence: { ...divergedAt, part, expected: textOfValue(expected), got: textOfValue(got), diff: cut(diff) },
      };
    },
  };
}

interface Forking {
  readonly runId: string;
  readonly body: ForkBody;
}

async function forkOf(
  runtime: Runtime,
  models: ReadonlyMap<string, LanguageModel>,
  { runId, body: { key: _key, model: name, ...options } }: Forking,
): Promise<{ readonly runId: string }> {
  const model = name === undefined ? undefined : models.get(name);
  if (name !== undefined && !model) {
    throw new InvalidInputError(
      `no definition of this process has the model "${name}"; a fork from here can use ${[...models.keys()].join(", ")}`,
    );
  }
  const { stores, tenant } = runtime;
  const { fork } = await import("../../testing/index.ts");
  const made = await fork({ stores, tenant, agentId: runId }, { ...options, model, runtime });
  // Readers follow the turn in the journal. The fork is not closed: it keeps its model while the process lives.
  void made.turn.result.catch(() => undefined);
  return { runId: made.agentId };
}

/** The models of all definitions by name, also those among which a composed model chooses. */
function modelsOf({ definitions }: Runtime): ReadonlyMap<string, LanguageModel> {
  const models = new Map<string, LanguageModel>();
  for (const { model } of definitions.values()) {
    for (const one of [model, ...calledModels(model)]) if (!models.has(one.name)) models.set(one.name, one);
  }
  return models;
}

/** Most characters of a text of a divergence. */
const LONGEST_TEXT = 20_000;

function textOfValue(value: unknown): string {
  return cut(typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "nothing"));
}

function cut(text: string): string {
  return text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text;
}
