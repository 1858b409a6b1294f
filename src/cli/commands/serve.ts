import { askTeam } from "../../demo/index.ts";
import { createRuntime, type Runtime } from "../../runtime/index.ts";
import {
  apiSurface,
  type RedisSharing,
  type RuntimeServer,
  serveRuntime,
  tealSurface,
  type TealServed,
} from "../../server/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { watchLeaving } from "../job/interrupts.ts";
import { workerWordsOf } from "../job/ask-job.ts";
import type { AskJob } from "../job/job.ts";
import { keptOpen, type StoreOptions, type StorePlace, storePlace, withStore } from "../job/store-place.ts";
import { whereOf, type WhereOptions } from "../job/where.ts";
import { usualPort } from "../options.ts";
import { readyLines } from "../serve/ready-lines.ts";
import { type AuthWay, type ServeAuth, serveAuth } from "../serve/serve-auth.ts";
import { type FileOptions, type ServedFiles, servedFiles } from "../serve/served-files.ts";

/** Where a server listens, and to whom. */
export interface ListenOptions {
  /** 0: any that is free. */
  readonly port?: number | undefined;
  readonly host?: string | undefined;
  readonly auth?: AuthWay | undefined;
  /** Origins of pages in browsers. */
  readonly cors?: readonly string[] | undefined;
  readonly drainSeconds?: number | undefined;
}

type PlaceOptions = ListenOptions & StoreOptions & Pick<WhereOptions, "on">;
export type ServeOptions = PlaceOptions & FileOptions;

/** Apart from the jobs of other commands, so that a server carries on its own agents alone. */
const serveStorePath = "./.troupe/serve.db";
/** Below the 30 seconds after which Kubernetes and others kill. */
const usualDrainSeconds = 25;
/** The part of the time to leave that the server's open requests have, before turns come to rest. */
const closingShare = 1 / 5;
/** Time kept for the end of the process, in milliseconds; a fifth of all time if that is less. */
const mostPartingMs = 1_000;
/** The version under which an agent of a module is served in the form of Teal Agents. */
const moduleVersion = "1.0";

/** Serves the agents of these files over HTTP until a signal ends it. */
export async function serveCommand(
  context: CliContext,
  files: readonly string[],
  options: ServeOptions,
): Promise<ExitCode> {
  const served = await servedFiles(files, context.directory, options);
  const workerWords = files.flatMap((file) => ["--agents", file]);
  return await serve(context, { served, workerWords, input: "Hello, what can you do?" }, options);
}

/** Serves the team of `ask`: callers ask the questions. */
export async function serveAsk(context: CliContext, job: AskJob, options: PlaceOptions): Promise<ExitCode> {
  const { openQueues } = storePlace(context, options);
  const agents = [askTeam(job, context.environment, openQueues === undefined ? "here" : "anywhere")];
  const served = { agents, teal: [], mayDecide: undefined };
  return await serve(context, { served, workerWords: workerWordsOf(job), input: job.question }, options);
}

interface Serving {
  readonly served: ServedFiles;
  /** The options of a `worker` that knows these agents. */
  readonly workerWords: readonly string[];
  /** What the printed command asks. */
  readonly input: string;
}

async function serve(context: CliContext, serving: Serving, options: PlaceOptions): Promise<ExitCode> {
  const access = serveAuth(options.auth ?? "token", context.environment);
  const store = storePlace(context, withOwnStore(options, context.environment));
  return await withStore(store, "open", async (stores) => {
    const sharing = await store.openSharing?.();
    try {
      return await serveStores(context, { ...serving, store, sharing, access }, stores, options);
    } finally {
      await sharing?.close();
    }
  });
}

interface ServingPlace extends Serving {
  readonly store: StorePlace;
  readonly sharing: RedisSharing | undefined;
  readonly access: ServeAuth;
}

async function serveStores(
  context: CliContext,
  { served, workerWords, input, store, sharing, access }: ServingPlace,
  stores: Stores,
  { port = usualPort, host = "127.0.0.1", cors = [], on, drainSeconds }: PlaceOptions,
): Promise<ExitCode> {
  const { part, queues, remarks } = await whereOf(context, { store, workerWords }, { on });
  const runtime = await createRuntime({
    agents: served.agents,
    stores: keptOpen(stores),
    mayDecide: served.mayDecide,
    showCosts: true,
    ...part,
  });
  const teal = tealServed(served);
  const { authenticate, tenant } = access;
  const server = serveRuntime(runtime, {
    authenticate,
    tenant,
    cors,
    surfaces: [apiSurface({ tickets: sharing?.tickets }), tealSurface({ agents: teal })],
    limits: { redis: sharing?.client },
  });
  try {
    const { url } = await server.listen({ port, host });
    if (queues === undefined) await runtime.recover();
    const place = placeText(store, queues !== undefined);
    const lines = readyLines(teal, {
      url,
      access,
      place,
      tenant: runtime.tenant,
      input,
      isYaml: served.teal.length > 0,
    });
    for (const line of lines) context.out(line);
    if (queues !== undefined) remarks.forEach(context.note);
  } catch (error) {
    await runtime.shutdown();
    throw error;
  }
  const drainMs = (drainSeconds ?? usualDrainSeconds) * 1_000;
  return await serveUntilTold(context, { runtime, server, drainMs });
}

function withOwnStore(options: StoreOptions, environment: CliContext["environment"]): StoreOptions {
  const { store, redis, prefix } = options;
  const isNamed = [store, redis, prefix].some((one) => one !== undefined) || (environment["TROUPE_REDIS"] ?? "") !== "";
  return isNamed ? { store, redis, prefix } : { store: serveStorePath };
}

function placeText({ name }: StorePlace, isOnWorkers: boolean): string {
  return isOnWorkers ? `${name}, and turns run on workers` : name;
}

function tealServed({ agents, teal }: ServedFiles): readonly TealServed[] {
  const others = agents.filter((definition) => !teal.some((one) => one.definition === definition));
  return [...teal, ...others.map((definition) => ({ definition, version: moduleVersion }))];
}

interface AtWork {
  readonly runtime: Runtime;
  readonly server: RuntimeServer;
  readonly drainMs: number;
}

async function serveUntilTold({ out, note }: CliContext, { runtime, server, drainMs }: AtWork): Promise<ExitCode> {
  const told = Promise.withResolvers<NodeJS.Signals>();
  const stopWatching = watchLeaving(
    process,
    {
      leave: told.resolve,
      leaveAtOnce(exitCode) {
        note("Left at once; what was at work is carried on at the next start.");
        process.exit(exitCode);
      },
    },
    () => performance.now(),
  );
  const signal = await told.promise;
  out(`Leaving on ${signal}: nothing new, streams end, turns come to a safe point. A second signal leaves at once.`);
  const late = setTimeout(() => {
    note(`Left after ${drainMs / 1_000} s, before all work had stopped; it is carried on at the next start.`);
    process.exit(exitCodes.success);
  }, drainMs);
  try {
    const leavingMs = drainMs - Math.min(mostPartingMs, drainMs / 5);
    await server.close({ timeoutMs: Math.round(leavingMs * closingShare) });
    const { left } = await runtime.drain({ timeoutMs: Math.round(leavingMs * (1 - closingShare)) });
    out(left === 0 ? "Left; nothing was cut off." : `Left; ${left} cut off, which go on at the next start.`);
    return exitCodes.success;
  } finally {
    stopWatching();
    late.unref();
  }
}
