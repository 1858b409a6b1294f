import { isIP } from "node:net";
import { extname, resolve } from "node:path";
import type { AgentDefinition } from "../../agents/index.ts";
import { askTeam } from "../../demo/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { createRuntime, type Runtime, type RuntimeOptions } from "../../runtime/index.ts";
import type { RuntimeServer, TealAgent } from "../../server/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { loadAgentFile } from "../job/agent-file.ts";
import { watchLeaving } from "../job/interrupts.ts";
import type { AskJob } from "../job/job.ts";
import { usualPort } from "../options.ts";
import { keptOpen, type StoreOptions, type StorePlace, storePlace, withStore } from "../job/store-place.ts";
import { type AuthKind, authOf, type ServedAuth } from "../serve/auth-of.ts";
import { readyLines } from "../serve/ready-lines.ts";

/** Where and how a server listens. */
export interface ListenOptions {
  /** 0: any that is free. */
  readonly port?: number | undefined;
  readonly host?: string | undefined;
  readonly auth?: AuthKind | undefined;
  /** Origins of web pages that may call. */
  readonly cors?: readonly string[] | undefined;
  readonly drainSeconds?: number | undefined;
}

export interface ServeCommandOptions extends ListenOptions, StoreOptions {
  readonly plugins?: string | undefined;
  readonly catalog?: string | undefined;
  /** Where turns run. Default `here`. */
  readonly on?: "here" | "workers" | undefined;
}

const usualHost = "127.0.0.1";
/** Below the 30 seconds after which Kubernetes and others kill. */
const usualDrainSeconds = 25;
/** Time kept for the end of the process after the drain, in milliseconds; a fifth of all time if that is less. */
const mostPartingMs = 1_000;

/** What a server serves. */
export interface Served {
  readonly agents: readonly AgentDefinition[];
  /** Agents of YAML files, which are served in the form of Teal Agents too. */
  readonly teal: readonly TealAgent[];
  readonly mayDecide?: RuntimeOptions["mayDecide"];
}

/** Serves the agents of files over HTTP until a signal ends it. */
export async function serveCommand(
  context: CliContext,
  files: readonly string[],
  options: ServeCommandOptions,
): Promise<ExitCode> {
  const place = storePlace(context, options);
  if (options.on === "workers" && place.openQueues === undefined) {
    throw new InvalidInputError("--on workers takes agents in Redis: give --redis, or set TROUPE_REDIS");
  }
  const auth = await authFor(context, options);
  return await serve(context, { ...options, place, auth, served: await servedBy(context, files, options) });
}

/** Serves the team that answers questions about this project's documents: `npm start -- --serve`. */
export async function serveAsk(context: CliContext, job: AskJob, options: ServeCommandOptions): Promise<ExitCode> {
  const place = storePlace(context, options);
  const auth = await authFor(context, options);
  const team = askTeam(job, context.environment, "here");
  return await serve(context, { ...options, place, auth, served: { agents: [team], teal: [] }, input: job.question });
}

async function authFor(context: CliContext, { auth = "token", host = usualHost }: ListenOptions): Promise<ServedAuth> {
  if (auth === "none" && !isLoopback(host)) {
    throw new InvalidInputError(
      `--auth none asks nobody for a token, so it serves this machine alone; with --host ${host} take --auth token or entra`,
    );
  }
  return await authOf(auth, context.environment);
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

const yamlEndings = [".yaml", ".yml"];

/** The agents of all files. Throws `InvalidInputError` for a file that cannot be served, and for two agents of one name. */
async function servedBy(
  { directory }: CliContext,
  files: readonly string[],
  { plugins, catalog }: ServeCommandOptions,
): Promise<Served> {
  const isYaml = (file: string): boolean => yamlEndings.includes(extname(file));
  if (!files.some(isYaml)) {
    for (const [flag, value] of Object.entries({ "--plugins": plugins, "--catalog": catalog })) {
      if (value !== undefined) throw new InvalidInputError(`${flag} is for agents of YAML files; none is given`);
    }
  }
  const agents: AgentDefinition[] = [];
  const teal: TealAgent[] = [];
  const rules: { readonly file: string; readonly mayDecide: RuntimeOptions["mayDecide"] }[] = [];
  for (const file of files) {
    if (isYaml(file)) {
      const { loadTealAgent } = await import("../../server/index.ts");
      const agent = await loadTealAgent(resolve(directory, file), {
        plugins: plugins === undefined ? undefined : resolve(directory, plugins),
        catalog: catalog === undefined ? undefined : resolve(directory, catalog),
      });
      teal.push(agent);
      agents.push(agent.definition);
      continue;
    }
    const known = await loadAgentFile(file, directory);
    agents.push(...known.agents);
    if (known.mayDecide) rules.push({ file, mayDecide: known.mayDecide });
  }
  const [rule, other] = rules;
  if (rule && other) {
    throw new InvalidInputError(
      `${rule.file} and ${other.file} both export mayDecide; a server has one rule, so export it from one of them`,
    );
  }
  return { agents, teal, mayDecide: rule?.mayDecide };
}

interface Serving extends Omit<ServeCommandOptions, "auth"> {
  readonly place: StorePlace;
  readonly auth: ServedAuth;
  readonly served: Served;
  /** Input of the command line to try. */
  readonly input?: string | undefined;
}

async function serve(context: CliContext, serving: Serving): Promise<ExitCode> {
  const { place, served, auth, cors, port = usualPort, host = usualHost, on = "here" } = serving;
  const { apiSurface, serveRuntime, tealSurface } = await import("../../server/index.ts");
  return await withStore(place, "open", async (stores) => {
    const queues = await place.openQueues?.();
    const runtime = await createRuntime({
      agents: served.agents,
      stores: keptOpen(stores),
      mayDecide: served.mayDecide,
      showCosts: true,
      ...(queues === undefined ? {} : { queues, role: on === "workers" ? "client" : "all" }),
    });
    try {
      const surfaces = [apiSurface(), ...(served.teal.length === 0 ? [] : [tealSurface({ agents: served.teal })])];
      const server = serveRuntime(runtime, { authenticate: auth.authenticate, surfaces, cors });
      const { url } = await server.listen({ port, host });
      // Turns that a dead process left open go on here.
      if (on === "here") await runtime.recover();
      const lines = readyLines({ url, served, auth, place, on, input: serving.input, tenant: runtime.tenant });
      for (const line of lines) context.out(line);
      await serveUntilTold(context, { server, runtime, drainMs: (serving.drainSeconds ?? usualDrainSeconds) * 1_000 });
    } finally {
      await runtime.shutdown();
    }
    return exitCodes.success;
  });
}

interface AtWork {
  readonly server: RuntimeServer;
  readonly runtime: Runtime;
  readonly drainMs: number;
}

async function serveUntilTold({ out, note }: CliContext, { server, runtime, drainMs }: AtWork): Promise<void> {
  const told = Promise.withResolvers<NodeJS.Signals>();
  const leaveAtOnce = (exitCode: number): never => {
    note("Left at once; committed work is kept, and open turns go on at the next start.");
    process.exit(exitCode);
  };
  const stopWatching = watchLeaving(process, { leave: told.resolve, leaveAtOnce }, () => performance.now());
  const signal = await told.promise;
  const seconds = drainMs / 1_000;
  out(`Leaving on ${signal}: streams end, turns stop at the next safe point within ${seconds} s. Again: at once.`);
  const late = setTimeout(() => {
    note(`Left after ${seconds} s, before all work had stopped; it goes on at the next start.`);
    process.exit(exitCodes.success);
  }, drainMs);
  try {
    const partingMs = Math.min(mostPartingMs, drainMs / 5);
    const leaving = Math.round(drainMs - partingMs);
    await server.close({ timeoutMs: Math.round(leaving / 5) });
    const { left } = await runtime.drain({ timeoutMs: Math.round((leaving * 4) / 5) });
    out(left === 0 ? "Left; nothing was cut off." : `Left; ${left} cut off, which go on at the next start.`);
  } finally {
    stopWatching();
    late.unref();
  }
}
