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
import { mcpWords } from "../mcp/mcp-tools.ts";
import { readyLines } from "../serve/ready-lines.ts";
import { type AuthWay, type ServeAuth, serveAuth } from "../serve/serve-auth.ts";
import { noPageBecause, servedPage } from "../serve/served-page.ts";
import { mcpStateKey } from "../serve/mcp-state-key.ts";
import { type FileOptions, type ServedFiles, servedFiles } from "../serve/served-files.ts";
import { serveStubs } from "../serve/serve-stubs.ts";
import { serveWebhooks, type WebhookWords } from "../serve/serve-webhooks.ts";
import { type LoadedSurfaces, loadSurfaces } from "../serve/surfaces.ts";

/** Address of the server, and who may call it. */
export interface ListenOptions extends WebhookWords {
  /** 0: any free port. */
  readonly port?: number | undefined;
  readonly host?: string | undefined;
  readonly auth?: AuthWay | undefined;
  /** Comma-separated names of surfaces. Default: all whose packages are installed. */
  readonly surfaces?: string | undefined;
  /** Headers with the front end's chat id. */
  readonly chats?: readonly string[] | undefined;
  /** Allowed origins of web pages. */
  readonly cors?: readonly string[] | undefined;
  /** Allowed values of `Host`. */
  readonly hosts?: readonly string[] | undefined;
  /** Prints a line for each answered request. */
  readonly log?: boolean | undefined;
  /** Access to `/metrics`. */
  readonly metrics?: MetricsWay | undefined;
  /** Number of proxies in front of the server. */
  readonly proxies?: number | undefined;
  readonly drainSeconds?: number | undefined;
  /** `false` disables the page. */
  readonly page?: boolean | undefined;
}

/** The values of --metrics. */
export type MetricsWay = "local" | "open" | "off";

type PlaceOptions = ListenOptions & StoreOptions & Pick<WhereOptions, "on">;
/** Options of `serveRuntime()`. */
export type ServeOptions = PlaceOptions & FileOptions;

/** Separate from the jobs of other commands, so that a server continues only its own agents. */
const serveStorePath = "./.troupe/serve.db";
/** Share of the drain time for the server's open requests, before turns are stopped. */
const closingShare = 1 / 5;
/** Version of a module's agent in URLs of Teal Agents. */
const moduleVersion = "1.0";

/** Serves the agents of these files over HTTP until a signal ends it. */
export async function serveCommand(
  context: CliContext,
  files: readonly string[],
  options: ServeOptions,
): Promise<ExitCode> {
  const served = await servedFiles(files, context, options);
  const workerWords = [...files.flatMap((file) => ["--agents", file]), ...mcpWords(options.mcp)];
  const store = servedStore(context, options);
  return await serve(context, { served, workerWords, store, input: "Hello, what can you do?" }, options);
}

/** Serves the team of `ask`; callers send the questions. */
export async function serveAsk(context: CliContext, job: AskJob, options: PlaceOptions): Promise<ExitCode> {
  const store = servedStore(context, options);
  const pace = { reach: reachOf(store), tokensPerSecond: offlineSpeedOf(context.environment) };
  const served = { agents: [teamOf(job, pace)], teal: [], mayDecide: undefined };
  return await serve(context, { served, workerWords: workerWordsOf(job), store, input: job.question }, options);
}

interface Serving {
  readonly served: ServedFiles;
  /** Options of a `worker` for these agents. */
  readonly workerWords: readonly string[];
  readonly store: StoreLocation;
  /** Input of the printed example command. */
  readonly input: string;
}

async function serve(context: CliContext, serving: Serving, options: PlaceOptions): Promise<ExitCode> {
  const { store } = serving;
  const { port = usualPort, host = "127.0.0.1", on, auth = "token" } = options;
  const access = serveAuth(auth, context.environment);
  // Checks everything that needs no store before the store creates a file.
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
  const made = await surfaces.make({
    agents: served.agents,
    teal,
    sharing,
    chatIdHeaders: options.chats ?? [],
    mcpStateKey: () => mcpStateKey(store, sharing),
  });
  const { part, queues, remarks } = await whereOf(context, { store, workerWords }, { on });
  const runtime = await createRuntime({
    agents: served.agents,
    stores: keptOpen(stores),
    mayDecide: served.mayDecide,
    showCosts: true,
    // Readers may connect shortly after the turn that they read has started.
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
    stubs: serveStubs(context.environment),
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
        `  Page: none (${noPage}); \`inspect\` shows the agents of a store on its machine`,
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
    plan: () => "no new requests, streams end, turns stop at a safe point.",
    atOnce: "running turns continue at the next start.",
    late: "it continues at the next start.",
    leave: async (ms) => {
      page?.close();
      await server.close({ timeoutMs: Math.round(ms * closingShare) });
      const { left } = await runtime.drain({ timeoutMs: Math.round(ms * (1 - closingShare)) });
      return left === 0 ? "Left; nothing was cut off." : `Left; ${left} cut off, which continue at the next start.`;
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

export function tealServed({ agents, teal }: ServedFiles): readonly TealServed[] {
  const others = agents.filter((definition) => !teal.some((one) => one.definition === definition));
  return [...teal, ...others.map((definition) => ({ definition, version: moduleVersion }))];
}
