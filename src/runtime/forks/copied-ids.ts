import type { Json } from "../../state/index.ts";

/** Fields with texts and data of models, tools and people, in which only ids of subagents are replaced. */
const freeFields: ReadonlySet<string> = new Set([
  "text",
  "content",
  "arguments",
  "reasoning",
  "note",
  "structured",
  "input",
  "value",
  "message",
  "prompt",
  "reason",
]);

/** Fields that contain the bare id of an agent, or of an account. */
const agentFields: ReadonlySet<string> = new Set([
  "agentId",
  "rootAgentId",
  "parentAgentId",
  "childId",
  "childIds",
  "openIds",
  "awaits",
  "wokenBy",
  "agent_id",
  "id",
  "accountId",
  "parentAccountId",
  "parentId",
]);

/**
 * Copies stored values of a tree for a tree with another root. Ids of agents, turns, steps, calls, requests and accounts begin with the
 * root's id, or contain it after a `:`; everything else stays as it is. The root's id may be a word that also occurs in texts.
 */
export class CopiedIds {
  readonly #to: string;
  readonly #free: RegExp;
  readonly #composed: RegExp;
  readonly #bare: RegExp;

  constructor(from: string, to: string) {
    const root = `(?<![A-Za-z0-9._@-])${from.replaceAll(/[^\w-]/g, "\\$&")}`;
    this.#to = to;
    this.#free = new RegExp(`${root}(?=~[0-9a-f]{16}(?![0-9a-f]))`, "g");
    this.#composed = new RegExp(`${root}(?=[~#])`, "g");
    this.#bare = new RegExp(`${root}(?=[~#]|$)`, "g");
  }

  copy<T>(value: T): T {
    return this.#copied(value as Json, "", false) as T;
  }

  #copied(value: Json | undefined, field: string, isFree: boolean): Json | undefined {
    if (typeof value === "string") {
      if (field === "sentCallId") return value;
      const ids = isFree ? this.#free : agentFields.has(field) ? this.#bare : this.#composed;
      return value.replace(ids, () => this.#to);
    }
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map((member) => this.#copied(member, field, isFree) as Json);
    const copy: Record<string, Json> = {};
    for (const [name, member] of Object.entries(value)) {
      // Names of fields may be ids, too: those of queued calls.
      const copied = this.#copied(member, name, isFree || freeFields.has(name));
      if (copied !== undefined) copy[name] = copied;
    }
    return copy;
  }
}
