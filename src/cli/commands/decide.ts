import { resolve } from "node:path";
import { type AgentDefinition, collectDefinitions } from "../../agents/index.ts";
import { systemClock } from "../../base/index.ts";
import { InvalidInputError, AlreadyOwnedError } from "../../errors/index.ts";
import { type RuntimeOptions, type Decide, Requests } from "../../runtime/index.ts";
import { type AgentRecord, type AgentRequest, DEFAULT_TENANT, type JsonObject } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { type CliContext, commandLine, userName } from "../cli-context.ts";
import { type ExitCode, exitCodes, failureOf } from "../failure.ts";
import { resultOf } from "../inline/reply.ts";
import { loadAgentFile } from "../job/agent-file.ts";
import { type Owner, ownerOf, findAgent } from "../job/find-agent.ts";
import { findRequest, verdictFor } from "../job/find-request.ts";
import { type AgentsOption, jobToResume } from "../job/go-on.ts";
import { fileJobOf, type Job, type JobOptions } from "../job/job.ts";
import { runJob } from "../job/run-job.ts";
import { withMcpTools } from "../mcp/mcp-tools.ts";
import { type StoreOptions, type StoreLocation, storeLocation, withStore } from "../job/store-location.ts";
import { stateText } from "../view/request-lines.ts";

export interface DecideOptions extends JobOptions, StoreOptions, AgentsOption {
  /** Name of the deciding person. Default: the user of the operating system. */
  readonly by?: string | undefined;
  /** Whether to continue the agent; `false` only records the decision. */
  readonly run: boolean;
}

/** A decision from the command line. */
export interface Wish {
  /** The request's id or its prefix; `undefined` for the only open request that accepts the verdict. */
  readonly requestId: string | undefined;
  readonly verdict: Decide["verdict"];
  readonly reason?: string | undefined;
  /** Replaces the model's arguments. */
  readonly arguments?: JsonObject | undefined;
  /** The answer as typed, and whether it reports a failure. */
  readonly answer?: { readonly text: string; readonly isError: boolean };
}

/** Decides a request, and continues its agent unless a live process does. */
export async function decideCommand(context: CliContext, wish: Wish, options: DecideOptions): Promise<ExitCode> {
  const store = storeLocation(context, options);
  return await withStore(store, "openExisting", (stores) => decideIn(context, { stores, store }, wish, options));
}

interface OpenStore {
  readonly stores: Stores;
  readonly store: StoreLocation;
}

async function decideIn(
  context: CliContext,
  { stores, store }: OpenStore,
  wish: Wish,
  options: DecideOptions,
): Promise<ExitCode> {
  const say = options.json === true || options.quiet === true ? context.note : context.out;
  const { requestId: text } = wish;
  const request = await findRequest(stores, text, wish.verdict);
  const verdict = verdictFor(request, wish.verdict);
  const { requestId, rootAgentId } = request;
  const decide: Decide = { verdict, by: options.by ?? userName(), ...detailsOf(wish, request) };
  // The store's error contains the earlier decision.
  if (request.status !== "open") return await refuse(stores, requestId, decide);
  if (text === undefined) say(`Deciding ${requestId}, the only open request: ${request.prompt.split("\n")[0] ?? ""}`);
  const root = await findAgent(stores, rootAgentId);
  const owner = await ownerOfTree(stores, request);
  const isCarriedOn = options.run && owner === undefined && root.pause === null;
  // Loaded first, so that an agent that cannot be continued fails before the decision.
  const job = isCarriedOn
    ? await jobToResume(context, stores, { root, store }, options)
    : verdict === "edited"
      ? await jobToCheck(context, () => jobToResume(context, stores, { root, store }, options))
      : undefined;
  const mayDecide = await ruleFor(context, { request, root, job }, options);
  const decided = await decideStored(stores, requestId, decide, { definitions: job?.agents, mayDecide });
  say(`${requestId} is ${stateText(decided)}.`);
  if (isCarriedOn && job !== undefined) return await carryOn(context, stores, { job, options, say });
  if (options.json === true) context.out(JSON.stringify(decided));
  const resume = commandLine(context.invocation, "resume", [rootAgentId, ...store.words]);
  say(restText(owner, root, resume));
  if (owner === undefined) store.remarks.forEach(say);
  return exitCodes.success;
}

function detailsOf({ reason, arguments: edited, answer }: Wish, request: AgentRequest): Partial<Decide> {
  if (answer === undefined) return { reason, arguments: edited };
  return { result: resultOf(request, answer.text), isError: answer.isError };
}

/** Always throws: the request was already decided, and the error contains the decision. */
async function refuse(stores: Stores, requestId: string, decide: Decide): Promise<ExitCode> {
  await decideStored(stores, requestId, decide);
  return exitCodes.success;
}

/** The process that runs the requesting agent, or its root. */
async function ownerOfTree(
  stores: Stores,
  { agentId, rootAgentId }: Pick<AgentRequest, "agentId" | "rootAgentId">,
): Promise<Owner | undefined> {
  const own = await ownerOf(stores, { tenant: DEFAULT_TENANT, agentId });
  return own ?? (await ownerOf(stores, { tenant: DEFAULT_TENANT, agentId: rootAgentId }));
}

/** The job whose tool validates edited arguments; `undefined` if the process that continues the agent validates them. */
async function jobToCheck(context: CliContext, job: () => Promise<Job>): Promise<Job | undefined> {
  try {
    return await job();
  } catch (error) {
    const { text } = failureOf(error, context.environment);
    context.note(`The process that continues the agent will validate the arguments: ${text}`);
    return undefined;
  }
}

interface CarryingOn {
  readonly job: Job;
  readonly options: DecideOptions;
  readonly say: (line: string) => void;
}

async function carryOn(context: CliContext, stores: Stores, { job, options, say }: CarryingOn): Promise<ExitCode> {
  try {
    return await runJob(context, stores, job, options);
  } catch (error) {
    // Another process has taken over the agent, and finds the decision in its inbox.
    if (!(error instanceof AlreadyOwnedError)) throw error;
    say(`Another process continues it: ${error.message}.`);
    return exitCodes.success;
  }
}

/** The message about which process continues the agent. */
export function restText(
  owner: Owner | undefined,
  { agentId, pause }: Pick<AgentRecord, "agentId" | "pause">,
  resumeCommand: string,
): string {
  if (owner?.isAlive === true) return `Process ${owner.pid} runs it and continues it.`;
  if (owner !== undefined)
    return `Process ${owner.pid} of another machine owns it and continues it if it is still alive.`;
  if (pause !== null) return `Recorded. ${agentId} is paused; resume it with: ${resumeCommand}`;
  return `Recorded; no process runs it. Resume it with: ${resumeCommand}`;
}

/** The program behind the request, as far as this process knows it. */
export interface KnownProgram {
  readonly definitions?: readonly AgentDefinition[] | undefined;
  /** Its rule on who may decide. */
  readonly mayDecide?: RuntimeOptions["mayDecide"];
}

/**
 * Decides a request in the store without running its agent. The process that runs the agent reads the decision, now or
 * later. Edited arguments are validated if their tool is among `definitions`. Throws `RequestConflictError` if the
 * request was already decided, and `InvalidInputError` if the verdict or the arguments are invalid, or the rule
 * refuses.
 */
export async function decideStored(
  stores: Stores,
  requestId: string,
  decide: Decide,
  { definitions = [], mayDecide }: KnownProgram = {},
): Promise<AgentRequest> {
  const desk = new Requests({
    stores,
    tenant: DEFAULT_TENANT,
    clock: systemClock,
    definitions: collectDefinitions(definitions),
    mayDecide,
    notify: () => {},
  });
  return await desk.decide(requestId, decide);
}

/** A request to decide. */
export interface Decidable {
  readonly request: AgentRequest;
  readonly root: AgentRecord;
  /** The job that continues the agent, if known. */
  readonly job: Job | undefined;
}

/**
 * The rule on who may decide a request: from the agent file in `--agents`, or from the file that the store names.
 * Throws `InvalidInputError` if the runtime that opened the request had a rule and none is found: without the rule, the
 * command decides nothing.
 */
export async function ruleFor(
  context: CliContext,
  { request, root, job }: Decidable,
  { agents }: AgentsOption,
): Promise<RuntimeOptions["mayDecide"]> {
  const isGuarded = request.isGuarded === true;
  const file = agents ?? (isGuarded ? fileJobOf(root.metadata)?.file : undefined);
  const loaded =
    job?.mayDecide !== undefined || file === undefined
      ? undefined
      : await withMcpTools(context, await loadAgentFile(file, context.directory), undefined);
  const rule = job?.mayDecide ?? loaded?.mayDecide;
  if (rule !== undefined || !isGuarded) return rule;
  const where = file === undefined ? "" : `; ${resolve(context.directory, file)} exports none`;
  throw new InvalidInputError(
    `there is a rule on who may decide request "${request.requestId}"${where}: name the file that exports it as "mayDecide" with --agents FILE, or decide in its program`,
  );
}
