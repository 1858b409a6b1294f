import { z } from "zod";
import {
  anyRule,
  deepFreeze,
  type OptionsSchema,
  flagRule,
  idRule,
  nameRule,
  oneOfRule,
  type OptionRule,
  optionsOf,
  ruleOf,
  signalRule,
  textRule,
  wholeNumberRule,
} from "../../base/index.ts";
import { budgetRule } from "../../budget/index.ts";
import { InvalidInputError, NotFoundError } from "../../errors/index.ts";
import { contentSchema, type JsonObject, LONGEST_CONTENT, rootOf, take, takeObject } from "../../state/index.ts";
import type {
  Decide,
  RequestListOptions,
  AgentStartOptions,
  GetMessagesOptions,
  PauseOptions,
  ResumeOptions,
  SpawnAgentOptions,
} from "./agent-types.ts";
import { stubsRule } from "./stub-options.ts";
import { authRule, checkedParts, keyRule } from "./turn-options.ts";
import type { AccountListOptions, AgentListOptions, FollowOptions, TurnListOptions } from "./runtime-types.ts";

/** Maximum number of characters of an agent's metadata, which is written with every change of its record. */
const METADATA_CHARACTERS = 1_000_000;

/** An agent's metadata, as a frozen copy. */
export function metadataRule(value: unknown, where: string): JsonObject {
  return takeObject(value, where, { maxSize: METADATA_CHARACTERS });
}

/** Maximum number of messages that an agent may be created with. */
const MOST_SEEDS = 10_000;

const seedsSchema = z.array(z.strictObject({ role: z.enum(["user", "assistant"]), content: contentSchema }));

/** The conversation of a new agent, as a frozen copy. */
const seedsRule: OptionRule = (value, where) => {
  const seeds = take(seedsSchema.max(MOST_SEEDS), value, where, { maxSize: LONGEST_CONTENT });
  const checked = seeds.map(({ role, content }, index) => {
    if (typeof content === "string") return { role, content };
    const of = `${where}[${index}]`;
    if (content.length === 0) throw new InvalidInputError(`${of}: the list of content parts is empty; use a text`);
    const other = content.find(({ type }) => type !== "text");
    if (role === "assistant" && other) {
      throw new InvalidInputError(`${of}: a message of the assistant cannot contain ${other.type}s`);
    }
    if (content.some((part) => part.type === "file" && part.artifactId !== undefined)) {
      throw new InvalidInputError(`${of}: a new agent has no artifacts yet; give the file as a data: or https: URL`);
    }
    return { role, content: checkedParts(content, `${of}: content part`) };
  });
  return deepFreeze(checked);
};

/** Rules of the options that all functions creating an agent share. */
export const agentFields = {
  sessionId: textRule,
  ownerId: textRule,
  metadata: metadataRule,
  autoSave: flagRule,
  messages: seedsRule,
  stubs: stubsRule,
} as const;

const startOptionsSchema: OptionsSchema<AgentStartOptions> = {
  rules: { ...agentFields, agentId: idRule, budget: budgetRule },
  instead: { contextId: "agentId", id: "agentId", userId: "ownerId", limits: "budget", history: "messages" },
};

const pauseOptionsSchema: OptionsSchema<PauseOptions> = { rules: { now: flagRule } };
const resumeOptionsSchema: OptionsSchema<ResumeOptions> = {
  rules: { auth: authRule },
  instead: { credentials: "auth: { credentials }" },
};
const messagesOptionsSchema: OptionsSchema<GetMessagesOptions> = {
  rules: { maxMessages: wholeNumberRule(1), withoutTrace: flagRule },
  instead: { limit: "maxMessages" },
};
const spawnOptionsSchema: OptionsSchema<SpawnAgentOptions> = {
  rules: { key: nameRule, budget: budgetRule },
  needed: ["key"],
  instead: { name: "key", id: "key", limits: "budget" },
};
const followOptionsSchema: OptionsSchema<FollowOptions> = {
  rules: { after: textRule, signal: signalRule },
  instead: { cursor: "after", from: "after" },
};
const listOptionsSchema: OptionsSchema<AgentListOptions> = {
  rules: {
    rootAgentId: textRule,
    sessionId: textRule,
    ownerId: textRule,
    rootsOnly: flagRule,
    order: oneOfRule("id", "newest"),
    limit: wholeNumberRule(1),
    after: textRule,
  },
};
const turnsOptionsSchema: OptionsSchema<TurnListOptions> = {
  rules: {
    ownerId: textRule,
    sessionId: textRule,
    agentId: textRule,
    status: oneOfRule("queued", "open", "completed", "stopped", "failed"),
    limit: wholeNumberRule(1),
    after: textRule,
  },
};
const requestsOptionsSchema: OptionsSchema<RequestListOptions> = {
  rules: {
    rootAgentId: textRule,
    agentId: textRule,
    turnId: textRule,
    ownerId: textRule,
    status: oneOfRule("open", "decided", "closed"),
    limit: wholeNumberRule(1),
    after: textRule,
  },
};

const byWhom = { by: textRule, reason: textRule, argumentsHash: textRule, key: keyRule } as const;
const decideOptionsSchema: OptionsSchema<Decide> = {
  // Verdict, arguments and result are validated later, against the request that they decide.
  rules: { ...byWhom, verdict: textRule, arguments: anyRule, result: anyRule, isError: flagRule },
  instead: {
    decision: "verdict",
    args: "arguments",
    answer: "result",
    actorId: "by",
    idempotencyKey: "key",
  },
};

export function startOptionsOf(options: unknown): AgentStartOptions {
  return optionsOf<AgentStartOptions>(options, "runtime.agent()", startOptionsSchema);
}

export function pauseOptionsOf(options: unknown): PauseOptions {
  return optionsOf<PauseOptions>(options, "agent.pause()", pauseOptionsSchema);
}

export function resumeOptionsOf(options: unknown): ResumeOptions {
  return optionsOf<ResumeOptions>(options, "agent.resume()", resumeOptionsSchema);
}

export function messagesOptionsOf(options: unknown): GetMessagesOptions {
  return optionsOf<GetMessagesOptions>(options, "agent.getMessages()", messagesOptionsSchema);
}

export function spawnOptionsOf(options: unknown): SpawnAgentOptions {
  return optionsOf<SpawnAgentOptions>(options, "agent.spawn()", spawnOptionsSchema);
}

export function followOptionsOf(options: unknown): FollowOptions {
  return optionsOf<FollowOptions>(options, "runtime.follow()", followOptionsSchema);
}

export function listOptionsOf(options: unknown): AgentListOptions {
  return optionsOf<AgentListOptions>(options, "runtime.list()", listOptionsSchema);
}

export function turnListOptionsOf(options: unknown): TurnListOptions {
  return optionsOf<TurnListOptions>(options, "runtime.turns()", turnsOptionsSchema);
}

const accountsOptionsSchema: OptionsSchema<AccountListOptions> = {
  rules: { ownerId: textRule, after: textRule, limit: wholeNumberRule(1, 1_000) },
};

export function accountListOptionsOf(options: unknown): AccountListOptions {
  return { limit: 100, ...optionsOf<AccountListOptions>(options, "runtime.accountsAbove()", accountsOptionsSchema) };
}

export function requestListOptionsOf(options: unknown): RequestListOptions {
  return optionsOf<RequestListOptions>(options, "runtime.requests()", requestsOptionsSchema);
}

export function decideOf(decide: unknown, of: string): Decide {
  return optionsOf<Decide>(decide, of, decideOptionsSchema);
}

const isText = ruleOf("a text", (value) => typeof value === "string");

/** Throws `InvalidInputError` for anything but a string; `of` names the value: `runtime.find(): the agent's id`. */
export function textOfCaller(value: unknown, of: string): string {
  return isText(value, of) as string;
}

/** The error for a tree id that does not belong to a root agent: the id of a tree is that of its root agent. */
export function unknownTree(rootAgentId: string): NotFoundError {
  const root = rootOf(rootAgentId);
  return new NotFoundError(
    root === rootAgentId
      ? `there is no tree "${rootAgentId}": no agent of that id is stored`
      : `there is no tree "${rootAgentId}": that is the id of a subagent, whose events are in the tree "${root}"`,
  );
}
