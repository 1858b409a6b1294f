import { AlreadyOwnedError } from "../../errors/index.ts";
import type { Decide } from "../../runtime/index.ts";
import { type AgentRecord, type AgentRequest, DEFAULT_TENANT } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { failureOf } from "../failure.ts";
import { commandLine } from "../invocation.ts";
import type { Job, JobOptions } from "../job/job.ts";
import { type AgentsOption, jobToResume } from "../job/job-to-resume.ts";
import { type Owner, ownerOf } from "../job/owner.ts";
import { findAgent } from "../job/roots.ts";
import { runJob } from "../job/run-job.ts";
import { type StoreOptions, type StorePlace, storePlace, withStore } from "../job/store-place.ts";
import { userName } from "../job/user-name.ts";
import { decideStored } from "../requests/decide-stored.ts";
import { ruleFor } from "../requests/decision-rule.ts";
import { findRequest } from "../requests/find-request.ts";
import { stateText } from "../view/request-lines.ts";

export interface DecideOptions extends JobOptions, StoreOptions, AgentsOption {
  /** Who decides. Default: the user of the operating system. */
  readonly by?: string | undefined;
  /** False: the decision is recorded, and nobody is taken up. */
  readonly run: boolean;
}

/** What a person wants to decide. */
export interface Wish {
  /** The request's id or its start; undefined: the only one that is open and can be decided so. */
  readonly requestId: string | undefined;
  readonly verdict: Decide["verdict"];
  /** The rest of the decision, which may depend on what is asked. */
  readonly details: (request: AgentRequest) => Partial<Decide>;
}

/** Decides a request, and carries its agent on unless a living process does. */
export async function decideCommand(context: CliContext, wish: Wish, options: DecideOptions): Promise<ExitCode> {
  const store = storePlace(context, options);
  return await withStore(store, "openExisting", (stores) => decideIn(context, { stores, store }, wish, options));
}

interface OpenStore {
  readonly stores: Stores;
  readonly store: StorePlace;
}

async function decideIn(
  context: CliContext,
  { stores, store }: OpenStore,
  { requestId: text, verdict, details }: Wish,
  options: DecideOptions,
): Promise<ExitCode> {
  const say = options.json === true || options.quiet === true ? context.note : context.out;
  const request = await findRequest(stores, text, verdict);
  const { requestId, rootAgentId } = request;
  const decide: Decide = { verdict, by: options.by ?? userName(), ...details(request) };
  // Of one that is not open the desk tells who decided it.
  if (request.status !== "open") return await refuse(stores, requestId, decide);
  if (text === undefined) say(`Takes ${requestId}, the only one that is open: ${request.prompt.split("\n")[0] ?? ""}`);
  const root = await findAgent(stores, rootAgentId);
  const owner = await ownerOfTree(stores, request);
  const isCarriedOn = options.run && owner === undefined && root.pause === null;
  // Loaded first: what cannot be carried on is told before anything is decided.
  const job = isCarriedOn
    ? await jobToResume(context, root, store, options)
    : await jobToCheck(context, root, store, { verdict, options });
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

/** Always throws: the desk says how the request was decided before. */
async function refuse(stores: Stores, requestId: string, decide: Decide): Promise<ExitCode> {
  await decideStored(stores, requestId, decide);
  return exitCodes.success;
}

/** Who runs the agent that asks, or those above it. */
async function ownerOfTree(
  stores: Stores,
  { agentId, rootAgentId }: Pick<AgentRequest, "agentId" | "rootAgentId">,
): Promise<Owner | undefined> {
  const own = await ownerOf(stores, { tenant: DEFAULT_TENANT, agentId });
  return own ?? (await ownerOf(stores, { tenant: DEFAULT_TENANT, agentId: rootAgentId }));
}

/** The definitions against which edited arguments are checked here; without them whoever carries on checks them. */
async function jobToCheck(
  context: CliContext,
  root: AgentRecord,
  store: StorePlace,
  { verdict, options }: { readonly verdict: Decide["verdict"]; readonly options: DecideOptions },
): Promise<Job | undefined> {
  if (verdict !== "edited") return undefined;
  try {
    return await jobToResume(context, root, store, options);
  } catch (error) {
    const { text } = failureOf(error, context.environment);
    context.note(`The arguments are checked by whoever carries the agent on, not here: ${text}`);
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
    // Somebody took the agent up in the meantime, and finds the decision in its inbox.
    if (!(error instanceof AlreadyOwnedError)) throw error;
    say(`Another process carries it on: ${error.message}.`);
    return exitCodes.success;
  }
}

/** Who carries on what was decided. */
export function restText(
  owner: Owner | undefined,
  { agentId, pause }: Pick<AgentRecord, "agentId" | "pause">,
  resumeCommand: string,
): string {
  if (owner?.isAlive === true) return `Process ${owner.pid} runs it and carries on.`;
  if (owner !== undefined) return `Process ${owner.pid} of another machine holds it and carries on if it still lives.`;
  if (pause !== null) return `Recorded. ${agentId} is paused; carry it on with: ${resumeCommand}`;
  return `Recorded; nobody runs it now. Carry it on with: ${resumeCommand}`;
}
