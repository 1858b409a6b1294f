import { createRuntime } from "../../runtime/index.ts";
import {
  assertCanListen,
  type RedisSharing,
  serveRuntime,
  type ServeOptions as RuntimeServeOptions,
  type TealServed,
} from "../../server/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { CliContext } from "../cli-context.ts";
import type { ExitCode } from "../failure.ts";
import { reachOf, workerWordsOf } from "../job/ask-job.ts";
import { teamOf } from "../job/ask-team.ts";
import { offlineSpeedOf } from "../job/offline-speed.ts";
import type { AskJob } from "../job/job.ts";
import { workUntilTold } from "../job/leaving.ts";
import { keptOpen, type StoreOptions, type StoreLocation, storeLocation, withStore } from "../job/store-location.ts";
import { assertWhere, whereOf, type WhereOptions } from "../job/where.ts";
import { usualPort } from "../options.ts";
import { readyLines } from "../serve/ready-lines.ts";
import { type AuthWay, type ServeAuth, serveAuth } from "../serve/serve-auth.ts";
import { noPageBecause, servedPage } from "../serve/served-page.ts";
import { type FileOptions, type ServedFiles, servedFiles } from "../serve/served-files.ts";
import { serveWebhooks, type WebhookWords } from "../serve/serve-webhooks.ts";
import { type LoadedSurfaces, loadSurfaces } from "../serve/surfaces.ts";

/** Where a server listens, and to whom. */
export interface ListenOptions extends WebhookWords {
  /** 0: any that is free. */
  readonly port?: number | undefined;
  readonly host?: string | undefined;
  readonly auth?: AuthWay | undefined;
  /** Names of surfaces, with commas. Default: all whose packages are there. */
  readonly surfaces?: string | undefined;
  /** Headers in which front ends name their chats. */
  readonly chats?: readonly string[] | undefined;
  /** Origins of pages in browsers. */
  readonly cors?: readonly string[] | undefined;
  /** Values that `Host` may have. */
  readonly hosts?: readonly string[] | undefined;
  /** Prints a line for each answered request. */
  readonly log?: boolean | undefined;
  /** The clients that see `/metrics`. */
  readonly metrics?: MetricsWay | undefined;
  /** Proxies in front of the server. */
  readonly proxies?: number | undefined;
  readonly drainSeconds?: number | undefined;
  /** With `false` the server has no page. */
  readonly page?: boolean | undefined;
}

/** The values of --metrics. */
export type MetricsWay = "local" | "open" | "off";

type PlaceOptions = ListenOptions & StoreOptions & Pick<WhereOptions, "on">;
/** What `serveRuntime()` takes beside the runtime. */
export type ServeOptions = PlaceOptions & FileOptions;

/** Apart from the jobs of other commands, so that a server carries on its own agents alone. */
const serveStorePath = "./.troupe/serve.db";
/** The part of the time to leave that the server's open requests have, before turns come to rest. */
const closingShare = 1 / 5;
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
  const store = servedStore(context, options);
  return await serve(context, { served, workerWords, store, input: "Hello, what can you do?" }, options);
}

/** Serves the team of `ask`: callers ask the questions. */
export async function serveAsk(context: CliContext, job: AskJob, options: PlaceOptions): Promise<ExitCode> {
  const store = servedStore(context, options);
  const pace = { reach: reachOf(store), tokensPerSecond: offlineSpeedOf(context.environment) };
  const served = { agents: [teamOf(job, pace)], teal: [], mayDecide: undefined };
  return await serve(context, { served, workerWords: workerWordsOf(job), store, input: job.question }, options);
}

interface Serving {
  readonly served: ServedFiles;
  /** The options of a `worker` that knows these agents. */
  readonly workerWords: readonly string[];
  readonly store: StoreLocation;
  /** What the printed command asks. */
  readonly input: string;
}

async function serve(context: CliContext, serving: Serving, options: PlaceOptions): Promise<ExitCode> {
  const { store } = serving;
  const { port = usualPort, host = "127.0.0.1", on, auth = "token" } = options;
  const access = serveAuth(auth, context.environment);
  // What can be checked without the store is checked before the store makes a file.
  assertWhere(store, { on });
  const surfaces = await loadSurfaces(options.surfaces);
  const webhooks = await serveWebhooks(options, context);
  await assertCanListen({ port, host, authenticate: access.authenticate });
  return await withStore(store, "open", async (stores) => {
    const sharing = await store.openSharing?.(stores);
    try {
      return await serveStores(context, { ...serving, sharing, access, surfaces, webhooks }, stores, {
        ...options,
        port,
        host,
      });
    } finally {
      await sharing?.close();
    }
  });
}

interface ServingDependencies extends Serving {
  readonly sharing: RedisSharing | undefined;
  readonly access: ServeAuth;
  readonly surfaces: LoadedSurfaces;
  readonly webhooks: RuntimeServeOptions["webhooks"];
}

async function serveStores(
  context: CliContext,
  { served, workerWords, input, store, sharing, access, surfaces, webhooks }: ServingDependencies,
  stores: Stores,
  options: PlaceOptions & { readonly host: string },
): Promise<ExitCode> {
  const { port, host, cors = [], hosts, log = false, metrics, proxies, on, drainSeconds } = options;
  const teal = tealServed(served);
  const made = await surfaces.make({ agents: served.agents, teal, sharing, chatIdHeaders: options.chats ?? [] });
  const { part, queues, remarks } = await whereOf(context, { store, workerWords }, { on });
  const runtime = await createRuntime({
    agents: served.agents,
    stores: keptOpen(stores),
    mayDecide: served.mayDecide,
    showCosts: true,
    // Readers come a moment after the turn that they asked for.
    streaming: "always",
    ...part,
  });
  const { authenticate, tenant } = access;
  const server = serveRuntime(runtime, {
    authenticate,
    tenant,
    cors,
    hosts,
    metrics,
    proxies,
    surfaces: made,
    limits: { redis: sharing },
    webhooks,
    onLog: log ? (line) => context.note(JSON.stringify(line)) : undefined,
  });
  const noPage = noPageBecause({ host, proxies, page: options.page, access });
  const hasApi = surfaces.served.some(({ name }) => name === "api");
  const page = noPage === null ? await servedPage(runtime, { access, hasApi }) : undefined;
  try {
    const listening = await server.listen({ port, host, ...(page === undefined ? {} : { mounted: page }) });
    const { url } = listening;
    if (queues === undefined) await runtime.recover();
    const place = placeText(store, queues !== undefined);
    const lines = readyLines(teal, {
      url,
      page:
        page?.listensAt(listening.url) ??
        `  Page: none here (${noPage}); \`inspect\` shows the agents of a store on its machine`,
      surfaces,
      access,
      place,
      tenant: runtime.tenant,
      input,
      isYaml: served.teal.length > 0,
    });
    for (const line of lines) context.out(line);
    if (queues !== undefined) remarks.forEach(context.note);
  } catch (error) {
    page?.close();
    await runtime.shutdown();
    throw error;
  }
  return await workUntilTold(context, {
    drainSeconds,
    plan: () => "nothing new, streams end, turns come to a safe point.",
    atOnce: "what was at work is carried on at the next start.",
    late: "it is carried on at the next start.",
    leave: async (ms) => {
      page?.close();
      await server.close({ timeoutMs: Math.round(ms * closingShare) });
      const { left } = await runtime.drain({ timeoutMs: Math.round(ms * (1 - closingShare)) });
      return left === 0 ? "Left; nothing was cut off." : `Left; ${left} cut off, which go on at the next start.`;
    },
  });
}

function servedStore(context: CliContext, { store, redis, prefix }: StoreOptions): StoreLocation {
  const isNamed =
    [store, redis, prefix].some((one) => one !== undefined) || (context.environment["TROUPE_REDIS"] ?? "") !== "";
  return storeLocation(context, isNamed ? { store, redis, prefix } : { store: serveStorePath });
}

function placeText({ name }: StoreLocation, isOnWorkers: boolean): string {
  return isOnWorkers ? `${name}, and turns run on workers` : name;
}

function tealServed({ agents, teal }: ServedFiles): readonly TealServed[] {
  const others = agents.filter((definition) => !teal.some((one) => one.definition === definition));
  return [...teal, ...others.map((definition) => ({ definition, version: moduleVersion }))];
}
