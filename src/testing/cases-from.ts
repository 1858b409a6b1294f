import {
  createRedactor,
  idRule,
  listRule,
  nameRule,
  oneOfRule,
  type OptionRule,
  type OptionsSchema,
  optionsOf,
  portRule,
  reading,
  ruleOf,
  textRule,
  wholeNumberRule,
} from "../base/index.ts";
import { type Content, DEFAULT_TENANT, type Json, type StopReason, stopReasons, textOf } from "../state/index.ts";
import { formatAgentCursor, type Stores } from "../stores/index.ts";
import type { EvalCase } from "./datasets.ts";
import { readRecording, type Recording } from "./recording.ts";

/** Which runs `casesFrom()` takes. */
export interface CasesFilter {
  /** The definition of the root agents. */
  readonly agent: string;
  /** Only agents that were created at this time or later. Default: any. */
  readonly since?: Date | undefined;
  /** Only agents that were created before this time. Default: any. */
  readonly until?: Date | undefined;
  /** How the turn ended. Default `["completed"]`. */
  readonly endedWith?: readonly StopReason[] | undefined;
  /** How many cases, the newest first. Default 100. */
  readonly limit?: number | undefined;
  /** Default: the tenant of runtimes without one. */
  readonly tenant?: string | undefined;
  /** Texts of at least 4 characters to redact, besides secrets of the environment and everything that looks like a key. Default: none. */
  readonly secrets?: readonly string[] | undefined;
}

/** A case that was a run. */
export interface StoredCase extends EvalCase {
  /** The text of the answer; its value, if the definition has an `output` schema. */
  readonly expected: Json;
  /** Why its turn ended. */
  readonly stopReason: StopReason;
  /** When the agent was created, in milliseconds since the epoch. */
  readonly createdAt: number;
}

const dateRule: OptionRule = ruleOf("a valid Date", (value) => value instanceof Date && !Number.isNaN(value.getTime()));

const filterSchema: OptionsSchema<CasesFilter> = {
  rules: {
    agent: nameRule,
    since: dateRule,
    until: dateRule,
    endedWith: listRule("a list of stop reasons", oneOfRule(...stopReasons)),
    limit: wholeNumberRule(1, 100_000),
    tenant: idRule,
    secrets: listRule("a list of texts", textRule),
  },
  needed: ["agent"],
  instead: { definition: "agent", name: "agent", from: "since", to: "until", last: "limit", stopReason: "endedWith" },
};

const storesRule = portRule("stores, for instance memoryStores()", ["listAgents", "readAgent", "exportTree"]);
const DEFAULT_LIMIT = 100;
const PAGE = 100;

/**
 * Makes cases of stored runs: the input of the first turn of each root agent of a definition, its answer as `expected`, and the agent's id as the
 * name. Later turns are left out, because they need the conversation before them, and so are inputs with images or files. Secrets are redacted.
 * Nothing is written, and no model is called.
 *
 * Rejects with `InvalidInputError` for invalid options, and with errors of the stores.
 */
export async function casesFrom(stores: Stores, filter: CasesFilter): Promise<readonly StoredCase[]> {
  reading("casesFrom(): stores", () => storesRule(stores, "casesFrom(): stores"));
  const given = optionsOf<CasesFilter>(filter, "casesFrom()", filterSchema);
  const { agent, since, until, limit = DEFAULT_LIMIT, tenant = DEFAULT_TENANT, secrets = [] } = given;
  const endedWith = given.endedWith ?? ["completed"];
  const redactor = createRedactor({ secrets });
  const cases: StoredCase[] = [];
  let after: string | undefined;
  for (;;) {
    const page = await stores.listAgents({
      tenant,
      rootsOnly: true,
      order: "newest",
      limit: PAGE,
      ...(after ? { after } : {}),
    });
    for (const record of page) {
      const { agentId, createdAt, definition, stubs } = record;
      if (since && createdAt < since.getTime()) return cases;
      // Answers of stubbed sessions are made of the results of an eval.
      if (definition.name !== agent || stubs || (until && createdAt >= until.getTime())) continue;
      const turn = firstTurnOf(await readRecording({ stores, agentId, tenant }));
      if (!turn || !endedWith.includes(turn.stopReason)) continue;
      const expected = redactor.value(turn.expected) as Json;
      const { stopReason } = turn;
      cases.push({ name: agentId, input: redactor.text(turn.input), expected, stopReason, createdAt });
      if (cases.length === limit) return cases;
    }
    const last = page.at(-1);
    if (!last || page.length < PAGE) return cases;
    after = formatAgentCursor(last);
  }
}

interface FirstTurn {
  readonly input: string;
  readonly expected: Json;
  readonly stopReason: StopReason;
}

/** `undefined` if the turn is open, or its input is not only text. */
function firstTurnOf({ agents: [root], definitions }: Recording): FirstTurn | undefined {
  const started = root?.entries.find((entry) => entry.type === "turn.started");
  const ended = root?.entries.find((entry) => entry.type === "turn.ended" && entry.turnId === started?.turnId);
  if (!root || started?.type !== "turn.started" || ended?.type !== "turn.ended") return undefined;
  const messageOf = (id: string) => root.messages.find((message) => message.id === id);
  const inputs = started.inputMessageIds.map((id) => messageOf(id)?.content ?? "");
  const input = inputs.map(textOf).join("\n\n");
  if (input === "" || !inputs.every(isText)) return undefined;
  const text = textOf((ended.outputMessageId !== null && messageOf(ended.outputMessageId)?.content) || "");
  const hasOutput = definitions.get(started.definition.hash)?.output !== undefined;
  return { input, expected: hasOutput ? parsed(text) : text, stopReason: ended.stopReason };
}

function isText(content: Content): boolean {
  return typeof content === "string" || content.every(({ type }) => type === "text");
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}
