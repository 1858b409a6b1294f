import {
  anyRule,
  clockRule,
  type OptionsSchema,
  flagRule,
  functionRule,
  idRule,
  listRule,
  oneOfRule,
  optionsOf,
  optionsRule,
  portRule,
  recordRule,
  wholeNumberRule,
} from "../../base/index.ts";
import { definitionRule } from "../../agents/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import type { Queues, ToolQueueOptions } from "../../queues/index.ts";
import type { Stores } from "../../stores/index.ts";
import { retentionRule } from "./deletion-types.ts";
import { accountsRule } from "./accounts-options.ts";
import type { Projections } from "./projection-stores.ts";
import type { IdleOptions, WorkSettings } from "./roles.ts";
import type { HealthOptions } from "./runtime-health.ts";
import type { RuntimeDrainOptions, RuntimeOptions, RuntimeSettings, RuntimeShutdownOptions } from "./runtime-types.ts";

const storeMethods = [
  "commit",
  "createAgent",
  "readAgent",
  "listAgents",
  "openTurn",
  "registerProcess",
  "onForeignWrite",
  "close",
] as const satisfies readonly (keyof Stores)[];

const queueMethods = [
  "wake",
  "add",
  "cancel",
  "work",
  "counts",
  "health",
  "drain",
  "close",
] as const satisfies readonly (keyof Queues)[];

export const storesRule = portRule("stores, for instance memoryStores()", storeMethods);
const queuesRule = portRule("queues, for instance localQueues()", queueMethods);

/** Each of the user's own stores is validated later, by its kind. */
const projectionsRule = optionsRule<Projections>({
  rules: { messages: anyRule, artifacts: anyRule, state: anyRule },
});

export const definitionsRule = listRule("a list of definitions made by defineAgent()", definitionRule);

const toolQueueOptionsSchema: OptionsSchema<ToolQueueOptions> = {
  rules: {
    concurrency: wholeNumberRule(1, 100_000),
    rateLimit: optionsRule<NonNullable<ToolQueueOptions["rateLimit"]>>({
      rules: { max: wholeNumberRule(1, 2 ** 31 - 1), perMs: wholeNumberRule(1, 2 ** 31 - 1) },
      needed: ["max", "perMs"],
    }),
  },
};

const workOptionsSchema: OptionsSchema<WorkSettings> = {
  rules: {
    agents: wholeNumberRule(1, 100_000),
    queues: recordRule("an object of queues by their names", optionsRule(toolQueueOptionsSchema)),
  },
  instead: { concurrency: "agents" },
};

const idleOptionsSchema: OptionsSchema<IdleOptions> = {
  rules: { keptMs: wholeNumberRule(0, 2 ** 31 - 1), agents: wholeNumberRule(0, 2 ** 31 - 1) },
  instead: { ms: "keptMs", timeoutMs: "keptMs", max: "agents" },
};

/** Rules of the options that all functions creating a runtime share. */
export const runtimeSettingsRules: OptionsSchema<RuntimeSettings>["rules"] = {
  stores: storesRule,
  queues: queuesRule,
  projections: projectionsRule,
  prices: anyRule,
  showCosts: flagRule,
  accounts: accountsRule,
  tenant: idRule,
  clock: clockRule,
  random: functionRule,
  leaseMs: wholeNumberRule(1, 2 ** 31 - 1),
  resolveAuth: functionRule,
  mayDecide: functionRule,
  streaming: oneOfRule("watched", "always"),
  onInspect: functionRule,
  restoreAfterCommit: flagRule,
  recovers: oneOfRule("all", "own"),
  idle: optionsRule(idleOptionsSchema),
};

/** Options that only `createRuntime()` has, because a private runtime runs only its own agent. */
export const insteadOfRole = {
  role: "createRuntime({ role })",
  work: "createRuntime({ work })",
  retention: "createRuntime({ retention })",
} as const;

const runtimeOptionsSchema: OptionsSchema<RuntimeOptions> = {
  rules: {
    ...runtimeSettingsRules,
    agents: definitionsRule,
    role: oneOfRule("all", "client", "worker"),
    work: optionsRule(workOptionsSchema),
    retention: retentionRule,
  },
  needed: ["agents"],
  instead: {
    store: "stores",
    definitions: "agents",
    agent: "agents",
    queue: "queues",
    maxSteps: "defineAgent({ budget: { maxSteps } })",
    budget: "defineAgent({ budget })",
  },
};

export function runtimeOptionsOf(options: unknown): RuntimeOptions {
  return optionsOf<RuntimeOptions>(options, "createRuntime()", runtimeOptionsSchema);
}

export function healthOptionsOf(options: unknown): HealthOptions {
  return optionsOf<HealthOptions>(options, "runtime.health()", {
    rules: { timeoutMs: wholeNumberRule(1, 2 ** 31 - 1) },
  });
}

const DEFAULT_DRAIN_MS = 25_000;
/** Less than Docker's default grace period for stopping a container. */
const DEFAULT_SHUTDOWN_MS = 8_000;

const leavingOptionsSchema: OptionsSchema<RuntimeShutdownOptions> = {
  rules: { timeoutMs: anyRule },
  instead: { ms: "timeoutMs" },
};

/** Throws `InvalidInputError` for an invalid time. */
export function shutdownMsOf(given?: RuntimeShutdownOptions): number {
  return leavingMsOf("shutdown", given, DEFAULT_SHUTDOWN_MS);
}

/** Throws `InvalidInputError` for an invalid time. */
export function drainMsOf(given?: RuntimeDrainOptions): number {
  return leavingMsOf("drain", given, DEFAULT_DRAIN_MS);
}

function leavingMsOf(call: string, given: RuntimeShutdownOptions | undefined, defaultMs: number): number {
  const { timeoutMs = defaultMs } = optionsOf<RuntimeShutdownOptions>(given, `${call}()`, leavingOptionsSchema);
  if (Number.isSafeInteger(timeoutMs) && timeoutMs >= 0 && timeoutMs < 2 ** 31) return timeoutMs;
  throw new InvalidInputError(
    `${call}({ timeoutMs }): invalid time ${String(timeoutMs)}; expected a whole number of milliseconds from 0 to 2147483647`,
  );
}
