import { type AgentDefinition, collectDefinitions, isBackground } from "../agents/index.ts";
import { createId, type OptionsSchema, flagRule, functionRule, harmless, optionsOf, reading } from "../base/index.ts";
import {
  type Account,
  agentAccountId,
  areSameLimits,
  bindingField,
  bindingOf,
  isEmpty,
  type Limits,
  limitsOf,
  shownAccount,
  turnFlagsOf,
} from "../budget/index.ts";
import { InvalidInputError, UnsupportedError } from "../errors/index.ts";
import { PriceBook } from "../model/index.ts";
import {
  type AgentKey,
  type AgentRecord,
  DEFAULT_TENANT,
  type Json,
  type Message,
  rootOf,
  statusOf,
  type TroupeEvent,
} from "../state/index.ts";
import { addToOuter, type ForeignWrites, isTreeChanged, memoryStores } from "../stores/index.ts";
import type { AlarmSource } from "./core/alarms.ts";
import { checkedPorts } from "./core/checked-ports.ts";
import { watchRolledBackTrees } from "./core/rollback.ts";
import { knownDefinition, rootIdentity } from "./core/root-agents.ts";
import { RuntimeCore } from "./core/runtime-core.ts";
import { type AccountLimits, accountLimitsOf } from "./api/accounts-options.ts";
import { watchedStores } from "./core/watched-stores.ts";
import {
  accountListOptionsOf,
  listOptionsOf,
  requestListOptionsOf,
  startOptionsOf,
  textOfCaller,
  turnListOptionsOf,
} from "./api/agent-options.ts";
import type { Agent, AgentStartOptions } from "./api/agent-types.ts";
import { partOf, type Role } from "./api/roles.ts";
import { assertSameStubs, assertStubbable } from "./api/stub-options.ts";
import { drainMsOf, healthOptionsOf, runtimeOptionsOf, shutdownMsOf } from "./api/runtime-options.ts";
import { healthOf, metricsOf } from "./api/runtime-health.ts";
import type { Runtime, RuntimeOptions } from "./api/runtime-types.ts";
import { deleteOptionsOf, deleteOwnerOptionsOf } from "./api/deletion-types.ts";
import { assertObserver } from "./api/turn-options.ts";
import { deleteAgent, deleteOwner, type DeletionDependencies, finishDeletions } from "./deletion/index.ts";
import { Retention } from "./deletion/retention.ts";
import { followTree, headOf } from "./follow/follow.ts";
import { type TreeWatcher, type TreeWatching, watchTree } from "./follow/watch-tree.ts";
import { absentError } from "./handles/read-agent.ts";
import { AgentHandle } from "./handles/agent-handle.ts";
import { OverviewStore } from "./projections/overview.ts";
import { createProjector, type Projector } from "./projections/projector.ts";
import { DueSchedules } from "./schedules/due-schedules.ts";
import { runScheduleNow, setSchedule } from "./schedules/runtime-schedules.ts";
import { RunSchedules } from "./schedules/run-schedules.ts";
import { StoredSchedules } from "./schedules/stored-schedules.ts";
import { unsavedStores } from "./unsaved/unsaved-stores.ts";

export const DEFAULT_LEASE_MS = 10_000;
/** Number of trees read per query to bring their projections up to date. */
const PAGE = 500;

/**
 * Creates a runtime and registers this process with the stores. Throws `InvalidInputError` for conflicting definitions,
 * `StoreUnavailableError` if the stores do not answer.
 */
export async function createRuntime<Chosen extends Role = "all">(given: RuntimeOptions<Chosen>): Promise<Runtime> {
  const options = runtimeOptionsOf(given);
  const { tenant = DEFAULT_TENANT, leaseMs = DEFAULT_LEASE_MS } = options;
  const ports = checkedPorts(options);
  const { clock } = ports;
  const definitions = collectDefinitions(options.agents);
  const part = partOf({ ...options, clock, definitions });
  const prices = reading(
    "createRuntime(): prices",
    () => new PriceBook(options.prices, { searchesAlways: options.showCosts === true }),
  );
  const durable = watchedStores(options.stores ?? memoryStores(), clock);
  const copies = createProjector({ ...options, ...ports }, { stores: durable, tenant, clock, auth: () => core.auth });
  const onSaved = copies && ((rootAgentId: string) => copies.look(rootAgentId));
  const stores = unsavedStores(durable, { clock, leaseMs, onSaved });
  const dueNow: AlarmSource = {
    what: "schedules",
    fireDue: (report) => due.fireDue(report),
    nextAt: () => due.nextAt(),
  };
  let overview: OverviewStore | undefined;
  let retention: Retention | undefined;
  const core: RuntimeCore = new RuntimeCore({
    ...options,
    ...ports,
    onCommitted: onSaved,
    onTurnEnded: copies && ((turnId) => copies.turnEnded(turnId)),
    onTreeForgotten: (rootAgentId) => overview?.forget(rootAgentId),
    shownRoots: () => overview?.roots ?? [],
    onClosing: async () => {
      await retention?.close();
      await copies?.close();
    },
    schedules: part.role === "client" ? undefined : dueNow,
    schedulesOf: (caller) => ofRuns.ofCall(caller),
    stores,
    tenant,
    leaseMs,
    definitions,
    part,
    priceBook: prices,
  });
  const due = new DueSchedules(core);
  const schedules = new StoredSchedules({
    stores,
    tenant,
    clock,
    assertOpen: () => core.assertOpen(),
    onNext: (at) => core.noteSchedule(at),
  });
  const ofRuns = new RunSchedules(core, schedules);
  await started(core);
  watchRolledBackTrees(core);
  const written = (writes: ForeignWrites) => core.live.passivation.keys().filter((key) => isTreeChanged(writes, key));
  if (copies) core.onForeignWrite((writes) => copies.lookAtAll(written(writes).map(rootOfAgent)));
  const deletions: DeletionDependencies = {
    stores,
    tenant,
    clock,
    queues: part.queues,
    copies,
    definitions,
    notify: (agentIds) => core.notify(agentIds),
    forget: (rootAgentId, deletedAt) => core.forgetTree(rootAgentId, deletedAt),
    onChange: (rootAgentId, listener) => {
      const ends = [core.onForeignWrite(listener), core.bus.listenToRows(listener, rootAgentId)];
      return () => {
        for (const end of ends) end();
      };
    },
  };
  if (options.retention && part.role !== "client") {
    retention = new Retention(deletions, options.retention);
    retention.start();
  }

  const runtime: Runtime = {
    get isOpen() {
      return core.isOpen;
    },
    stores,
    queues: part.queues,
    role: part.role,
    tenant,
    definitions,
    get overview() {
      if (!overview) {
        const store = new OverviewStore(clock);
        core.bus.listen((event) => store.noted(event));
        core.bus.listenToAccounts((accounts) => store.accounted(accounts));
        overview = store;
      }
      return overview;
    },
    agent: <Output>(definition: AgentDefinition<Output> | string, start?: AgentStartOptions) =>
      lookedAt(copies, openAgent(core, definition, start)) as Promise<Agent<Output>>,
    find: (agentId) => lookedAt(copies, findAgent(core, agentId)) as Promise<Agent<Json>>,
    list: async (filter) => (await stores.listAgents({ ...listOptionsOf(filter), tenant })).map(listed),
    turns: async (filter) => await stores.turns({ ...turnListOptionsOf(filter), tenant }),
    accounts: async (rootAgentId) =>
      await stores.accounts(tenant, textOfCaller(rootAgentId, "runtime.accounts(): its id")),
    accountsAbove: async (filter) => {
      const { ownerId, ...page } = accountListOptionsOf(filter);
      const found = await (ownerId === undefined ? stores.outer.list(tenant, page) : stores.outer.of(tenant, ownerId));
      return found.map((account) => shownAccount(account, clock.now()));
    },
    addToAccount: (accountId, limits) => addToAccount(core, accountId, limits),
    requests: async (filter) => await core.requests.list(requestListOptionsOf(filter)),
    decide: (requestId, decide) => core.requests.decide(requestId, decide),
    schedule: (key, options) => setSchedule({ core, schedules }, key, options),
    unschedule: (key) => schedules.remove(key),
    schedules: {
      list: (options) => schedules.list(options),
      get: (key) => schedules.get(key),
      pause: (key) => schedules.pause(key),
      resume: (key) => schedules.resume(key),
      runNow: (key, options) => runScheduleNow({ core, schedules }, key, options),
    },
    subscribe: (observer, options) => subscribe(core, observer, options),
    inspect: (observer) => {
      functionRule(observer, "runtime.inspect()");
      return core.inspections.add(observer);
    },
    follow: (rootAgentId, follow) => followTree(core, rootAgentId, follow),
    head: async (rootAgentId) => {
      const head = await headOf(core, rootAgentId);
      return { ...head, agents: head.agents.map(listed) };
    },
    projected: async (rootAgentId) => {
      textOfCaller(rootAgentId, "runtime.projected(): its id");
      core.assertOpen();
      await copies?.projected(rootAgentId);
    },
    delete: async (agentId, how) => {
      const id = textOfCaller(agentId, "runtime.delete(): the agent's id");
      const asked = deleteOptionsOf(how);
      core.assertOpen();
      return await deleteAgent(deletions, id, asked);
    },
    deleteOwner: async (ownerId, how) => {
      const id = textOfCaller(ownerId, "runtime.deleteOwner(): the owner's id");
      const asked = deleteOwnerOptionsOf(how);
      core.assertOpen();
      return await deleteOwner(deletions, id, asked);
    },
    recover: async () => {
      core.assertOpen();
      for (const { agentId, error } of await finishDeletions(deletions)) {
        process.emitWarning(
          `the deletion of ${agentId} could not be finished and will be tried again: ${String(error)}`,
        );
      }
      return await recover(core, copies);
    },
    health: async (how) => await healthOf(core, due.overdue, healthOptionsOf(how)),
    metrics: () => metricsOf(core),
    drain: async (how) => await core.drain(drainMsOf(how)),
    shutdown: async (how) => {
      await core.shutdown(shutdownMsOf(how));
    },
  };
  cores.set(runtime, core);
  return runtime;
}

const cores = new WeakMap<Runtime, RuntimeCore>();

/** Watches a tree of a runtime, for readers of its journal in other folders. Throws `InvalidInputError` for any other object. */
export function watchTreeOf(runtime: Runtime, rootAgentId: string, watcher: TreeWatcher): TreeWatching {
  const core = cores.get(runtime);
  if (core) return watchTree(core, rootAgentId, watcher);
  throw new InvalidInputError("invalid runtime; expected the object that createRuntime() returned, not a copy of it");
}

/** Starts the core; shuts it down again if a later step fails. */
async function started(core: RuntimeCore): Promise<void> {
  try {
    await core.start();
  } catch (error) {
    await core.shutdown().catch(() => undefined);
    throw error;
  }
}

async function openAgent(
  core: RuntimeCore,
  asked: AgentDefinition | string,
  given?: AgentStartOptions,
): Promise<Agent> {
  const definition = knownDefinition(core, asked, "runtime.agent()");
  const { name } = definition;
  const options = startOptionsOf(given);
  if (options.stubs) assertStubbable(definition, core.definitions, options.stubs);
  const agentId = options.agentId ?? createId();
  const limits = limitsOf(options.budget);
  const accountId = options.budget === undefined ? null : agentAccountId(agentId);
  if (options.autoSave === false) {
    if (core.part.role !== "all") {
      throw new InvalidInputError(
        `autoSave: false keeps agent "${agentId}" in this process, but a process with role "${core.part.role}" runs no agents of its own; use role "all"`,
      );
    }
    refuseBackground(definition, "autoSave: false");
    await core.stores.keepUnsaved(core.keyOf(agentId));
  }
  const { ownerId = null, sessionId = null, metadata = {}, messages = [], stubs } = options;
  const bound = { accountId, turnLimits: turnFlagsOf(limits), ...bindingField(bindingOf(limits)) };
  const identity = {
    ...rootIdentity(core, definition, agentId),
    ownerId,
    sessionId,
    metadata,
    ...bound,
    ...(stubs ? { stubs } : {}),
  };
  const account = accountId === null ? null : { id: accountId, agentId, turnId: null, parentId: null, limits };
  const seeds = seedsOf(messages, identity.createdAt);
  const { created, record } = await core.stores.createAgent(identity, account, {
    messages: seeds,
    definition: definition.stored,
  });
  if (record.definition.name !== name) {
    throw new InvalidInputError(`agent "${agentId}" exists with definition "${record.definition.name}", not "${name}"`);
  }
  if (!created && stubs) assertSameStubs(record, stubs);
  if (!created && options.budget !== undefined) await assertBudget(core, record, limits);
  return new AgentHandle(core, record);
}

/**
 * An existing agent keeps its budget, so a different one is refused. The budget that it was created with is accepted, because the
 * program that created the agent still passes it after `setBudget()`.
 */
async function assertBudget(
  core: RuntimeCore,
  { tenant, agentId, accountId }: AgentRecord,
  given: Limits,
): Promise<void> {
  const account = accountId === null ? undefined : await core.stores.account(tenant, accountId);
  if (!account) {
    throw new InvalidInputError(
      `agent "${agentId}" exists and was created without a budget for its life; remove budget, or limit its turns: executeTurn(input, { budget })`,
    );
  }
  const { limits, firstLimits = limits } = account;
  if (areSameLimits(given, limits) || areSameLimits(given, firstLimits)) return;
  throw new InvalidInputError(
    `agent "${agentId}" exists with another budget for its life; remove budget, and change it with agent.setBudget()`,
  );
}

async function addToAccount(core: RuntimeCore, accountId: string, given: AccountLimits): Promise<Account> {
  const where = "runtime.addToAccount()";
  const id = textOfCaller(accountId, `${where}: the account's id`);
  const more = accountLimitsOf(given, `${where}: the amounts`);
  if (isEmpty(more))
    throw new InvalidInputError(`${where} names no amount; add at least one, for instance { maxCost: 5 }`);
  core.assertOpen();
  const moment = { now: core.clock.now(), steady: core.clock.elapsed() };
  return (await addToOuter(core.stores.outer, { tenant: core.tenant, accountId: id, more }, moment)).account;
}

function seedsOf(seeds: NonNullable<AgentStartOptions["messages"]>, createdAt: number): Message[] {
  return seeds.map(({ role, content }, index) => {
    const origin = role === "user" ? "user" : "model";
    return { id: `seed:${index}`, role, content, createdAt, origin };
  });
}

async function findAgent(core: RuntimeCore, agentId: string): Promise<Agent> {
  textOfCaller(agentId, "runtime.find(): the agent's id");
  const record = await core.stores.readAgent(core.keyOf(agentId));
  if (!record) throw await absentError(core.stores, core.keyOf(agentId));
  return new AgentHandle(core, record);
}

/** Also brings the agent's projections up to date, because an earlier process may have died before it wrote them. */
async function lookedAt(copies: Projector | undefined, opened: Promise<Agent>): Promise<Agent> {
  const agent = await opened;
  copies?.look(rootOf(agent.agentId));
  return agent;
}

const subscribeOptionsSchema: OptionsSchema<NonNullable<Parameters<Runtime["subscribe"]>[1]>> = {
  rules: { streams: flagRule },
};

function subscribe(core: RuntimeCore, ...[observer, given]: Parameters<Runtime["subscribe"]>): { unsubscribe(): void } {
  assertObserver(observer, "runtime.subscribe()");
  const { streams = true } = optionsOf(given, "runtime.subscribe()", subscribeOptionsSchema);
  const next = typeof observer === "function" ? observer : observer.next;
  const tell = harmless("an observer of runtime.subscribe()", (event: TroupeEvent) =>
    core.contexts.of(event.turnId).run(() => next?.call(observer, event)),
  );
  const stop = core.bus.listen(tell, { isReader: streams });
  return { unsubscribe: stop };
}

/** Activates every unattended agent, and brings the projections of all trees up to date. */
async function recover(core: RuntimeCore, copies: Projector | undefined): Promise<string[]> {
  core.assertOpen();
  const { taken, unknown } = await core.work.recover();
  warnOfUnknown(unknown);
  if (copies) await lookAtAllTrees(core, copies);
  return [...taken];
}

/** An earlier process may have died before it wrote the projections of any tree. */
async function lookAtAllTrees(core: RuntimeCore, copies: Projector): Promise<void> {
  for (let after: string | undefined; ; ) {
    const page = await core.stores.listAgents({ tenant: core.tenant, rootsOnly: true, limit: PAGE, after });
    copies.lookAtAll(page);
    after = page.at(-1)?.agentId;
    if (page.length < PAGE || after === undefined) return;
  }
}

/** Warns, because these turns wait until a process with their definitions runs. */
function warnOfUnknown(unknown: ReadonlyMap<string, readonly string[]>): void {
  for (const [name, agentIds] of unknown) {
    const ids = agentIds.slice(0, 3);
    const more = agentIds.length > ids.length ? ` and ${agentIds.length - ids.length} more` : "";
    process.emitWarning(
      `recover() leaves ${ids.join(", ")}${more} with open turns: this runtime does not know the definition "${name}"; add it to createRuntime({ agents: [...] }), or recover in a process that knows it`,
      { code: "TROUPE_UNKNOWN_DEFINITION" },
    );
  }
}

/**
 * Refuses definitions that need a tree saved with each commit: background children outlive their turn, and their ends must not be
 * lost; workers of queued tools read the call from the store. Throws `UnsupportedError` that names the subagent or the tool and
 * the alternative.
 */
export function refuseBackground(definition: AgentDefinition, where: string): void {
  for (const { name, tools } of collectDefinitions([definition]).values()) {
    const queued = tools.tools.find((tool) => tool.kind === "function" && tool.queue !== undefined);
    if (queued) {
      throw new UnsupportedError(
        `agent "${name}" has the tool "${queued.name}" with a queue, whose workers read the call from the store; ${where} stores nothing. Remove its queue, or use an agent that is saved with each commit (autoSave: true)`,
        { details: { agent: name, tool: queued.name } },
      );
    }
    const tool = tools.tools.find(isBackground);
    if (!tool) continue;
    throw new UnsupportedError(
      `agent "${name}" has the subagent "${tool.name}" with mode "background", which continues after the turn; ${where} stores nothing for it. Use mode "await", or an agent that is saved with each commit (autoSave: true)`,
      { details: { agent: name, subagent: tool.name } },
    );
  }
}

/** The record with its public status. */
function listed(record: AgentRecord): AgentRecord {
  return { ...record, status: statusOf(record) };
}

function rootOfAgent({ agentId }: AgentKey): { readonly rootAgentId: string } {
  return { rootAgentId: rootOf(agentId) };
}
