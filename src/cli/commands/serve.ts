import { createRuntime, type Runtime } from "../../runtime/index.ts";
import { apiSurface, type RuntimeServer, serveRuntime, tealSurface, type TealServed } from "../../server/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { watchLeaving } from "../job/interrupts.ts";
import { keptOpen, type StoreOptions, storePlace, withStore } from "../job/store-place.ts";
import { whereOf, type WhereOptions } from "../job/where.ts";
import { type AuthWay, serveAuth } from "../serve/serve-auth.ts";
import { type FileOptions, type ServedFiles, servedFiles } from "../serve/served-files.ts";

export interface ServeOptions extends StoreOptions, FileOptions, Pick<WhereOptions, "on"> {
  readonly port?: number | undefined;
  readonly host?: string | undefined;
  readonly auth?: AuthWay | undefined;
  /** Origins of pages in browsers. */
  readonly cors?: readonly string[] | undefined;
}

export const usualPort = 8_080;
/** Apart from the jobs of other commands, so that a server carries on its own agents alone. */
export const serveStorePath = "./.troupe/serve.db";

/** Most milliseconds for leaving: less than most process supervisors wait. */
const LEAVING_MS = 25_000;

/** Serves the agents of these files over HTTP until a signal ends it. */
export async function serveCommand(
  context: CliContext,
  files: readonly string[],
  options: ServeOptions,
): Promise<ExitCode> {
  const { port = usualPort, host = "127.0.0.1", auth = "token", cors = [], on } = options;
  const served = await servedFiles(files, context.directory, options);
  const { authenticate, token } = serveAuth(auth, context.environment);
  const teal = tealServed(served);
  const surfaces = [apiSurface(), tealSurface({ agents: teal })];
  const store = storePlace(context, withOwnStore(options, context.environment));
  const workerWords = files.flatMap((file) => ["--agents", file]);
  return await withStore(store, "open", async (stores) => {
    const { part, queues } = await whereOf(context, { store, workerWords }, { on });
    const runtime = await createRuntime({
      agents: served.agents,
      stores: keptOpen(stores),
      mayDecide: served.mayDecide,
      showCosts: true,
      ...part,
    });
    const server = serveRuntime(runtime, { authenticate, surfaces, cors });
    try {
      const { url } = await server.listen({ port, host });
      if (queues === undefined) await runtime.recover();
      const place = `${store.name}${queues === undefined ? "" : ", and turns run on workers"}`;
      for (const line of servingLines(teal, { url, token, place })) context.out(line);
    } catch (error) {
      await runtime.shutdown();
      throw error;
    }
    return await serveUntilTold(context, runtime, server);
  });
}

function withOwnStore(options: StoreOptions, environment: CliContext["environment"]): StoreOptions {
  const { store, redis, prefix } = options;
  const isNamed = [store, redis, prefix].some((one) => one !== undefined) || (environment["TROUPE_REDIS"] ?? "") !== "";
  return isNamed ? { store, redis, prefix } : { store: serveStorePath };
}

/** The version under which an agent of a module is served. */
const MODULE_VERSION = "1.0";

function tealServed({ agents, teal }: ServedFiles): readonly TealServed[] {
  const others = agents.filter((definition) => !teal.some((one) => one.definition === definition));
  return [...teal, ...others.map((definition) => ({ definition, version: MODULE_VERSION }))];
}

interface ServingPlace {
  readonly url: string;
  readonly token: string | null;
  readonly place: string;
}

/** Where a server is, who may call it, and a command that works as it is typed. */
export function servingLines(served: readonly TealServed[], { url, token, place }: ServingPlace): readonly string[] {
  const addresses = served.map(({ definition, version }) => `${url}/${definition.name}/${version}`);
  const header = token === null ? "" : ` -H 'authorization: Bearer ${token}'`;
  const body = JSON.stringify({ items: [{ content: "Hello, what can you do?" }] });
  return [
    `Serving ${served.map(({ definition }) => definition.name).join(", ")} at ${url}; agents are kept in ${place}.`,
    `  API: ${url}/api, its page: ${url}/api/docs`,
    ...addresses.map((address) => `  Teal Agents: ${address}`),
    ...(token === null ? [] : [`Token: ${token}`]),
    "Try:",
    `  curl -sS ${addresses[0]}${header} -H 'content-type: application/json' -d '${body}'`,
  ];
}

async function serveUntilTold({ out, note }: CliContext, runtime: Runtime, server: RuntimeServer): Promise<ExitCode> {
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
  try {
    const closing = server.close();
    await runtime.drain({ timeoutMs: LEAVING_MS });
    await closing;
    return exitCodes.success;
  } finally {
    stopWatching();
  }
}
