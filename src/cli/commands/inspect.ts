import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { shellWord } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { type EvalsSource, Feed, type FeedSource, importRun, serveFeed, storeActor } from "../../inspector/index.ts";
import { DEFAULT_TENANT } from "../../state/index.ts";
import { type CliContext, userName } from "../cli-context.ts";
import { evalFilesSource } from "../eval/eval-files.ts";
import { isEvalReport } from "../eval/eval-report.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { withMcpTools } from "../mcp/mcp-tools.ts";
import { loadAgentFile } from "../job/agent-file.ts";
import { findAgent } from "../job/find-agent.ts";
import type { AgentsOption } from "../job/go-on.ts";
import { type StoreOptions, storeLocation } from "../job/store-location.ts";
import { wakeWorkers } from "./abort.ts";

export interface InspectOptions extends StoreOptions, AgentsOption {
  readonly port?: number | undefined;
  readonly open?: boolean | undefined;
  readonly readOnly?: boolean | undefined;
  readonly namesOnly?: boolean | undefined;
  readonly by?: string | undefined;
  /** A report of `eval --json`. */
  readonly evals?: string | undefined;
  /** An earlier one. */
  readonly compare?: string | undefined;
}

/** Serves the page for a store, a run in a file, or a report of evals, until Ctrl-C. */
export async function inspectCommand(
  context: CliContext,
  what: string | undefined,
  options: InspectOptions,
): Promise<ExitCode> {
  const { port, namesOnly, open } = options;
  const evals = await evalsOf(context, options);
  const opened = await openWhat(context, what, options);
  try {
    const feed = new Feed({ namesOnly, run: opened?.run, evals });
    if (opened) feed.add(opened.source);
    const mayAct = opened?.source.actor !== undefined;
    const server = await serveFeed(feed, { port, mayAct });
    const names = [options.evals, opened?.name].flatMap((name) => name ?? []);
    context.out(`Inspect ${names.join(" and ")} at ${server.url}`);
    if (mayAct) context.out(`Read-only: ${server.watchUrl}`);
    context.note("Press Ctrl-C to stop.");
    if (open === true) openBrowser(server.url);
    await interrupted();
    await server.close();
    return exitCodes.success;
  } finally {
    await opened?.close();
  }
}

async function evalsOf(
  { directory }: CliContext,
  { evals, compare }: InspectOptions,
): Promise<EvalsSource | undefined> {
  if (evals === undefined) {
    if (compare === undefined) return undefined;
    throw new InvalidInputError("--compare names an earlier report; give the report to compare with --evals");
  }
  return await evalFilesSource({
    file: resolve(directory, evals),
    before: compare === undefined ? undefined : resolve(directory, compare),
  });
}

interface Opened {
  readonly source: FeedSource;
  /** The run that the page shows first. */
  readonly run: string | undefined;
  readonly name: string;
  close(): Promise<void>;
}

/** With a report of evals, a store is opened only if it is named. */
async function openWhat(
  context: CliContext,
  what: string | undefined,
  options: InspectOptions,
): Promise<Opened | undefined> {
  if (what?.endsWith(".json") === true) return await openFile(context, what);
  const { evals, store, redis } = options;
  const isNamed = what !== undefined || store !== undefined || redis !== undefined;
  return evals === undefined || isNamed ? await openStore(context, what, options) : undefined;
}

async function openFile({ directory }: CliContext, path: string): Promise<Opened> {
  const text = await readFile(resolve(directory, path), "utf8").catch((cause: unknown) => {
    throw new InvalidInputError(`${path} cannot be read; give a file written by \`export --json\``, { cause });
  });
  if (isEvalReport(text)) {
    throw new InvalidInputError(`${path} is a report of evals; give it with --evals ${shellWord(path)}`);
  }
  const { runId, ...source } = await importRun(text);
  return { source: { ...source, isFile: true }, run: runId, name: path, close: () => source.stores.close() };
}

async function openStore(context: CliContext, what: string | undefined, options: InspectOptions): Promise<Opened> {
  const place = storeLocation(context, options);
  const file =
    options.agents === undefined
      ? undefined
      : await withMcpTools(context, await loadAgentFile(options.agents, context.directory), undefined);
  const stores = await place.openExisting();
  const queues = await place.openQueues?.();
  const close = async (): Promise<void> => {
    await queues?.close();
    await stores.close();
  };
  try {
    const run = what === undefined ? undefined : (await findAgent(stores, what)).rootAgentId;
    const actor = storeActor({
      stores,
      tenant: DEFAULT_TENANT,
      by: options.by ?? userName(),
      definitions: file?.agents,
      mayDecide: file?.mayDecide,
      notify: (agentIds) => void wakeWorkers(place, agentIds).catch(() => undefined),
    });
    const source = { stores, tenant: DEFAULT_TENANT, queues, actor: options.readOnly === true ? undefined : actor };
    return { source, run, name: place.name, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Resolves at Ctrl-C or SIGTERM. */
export async function interrupted(): Promise<void> {
  const { promise, resolve: end } = Promise.withResolvers<void>();
  // The server does not keep the process alive.
  const alive = setInterval(() => {}, 60_000);
  const signals = ["SIGINT", "SIGTERM"] as const;
  const onSignal = (): void => end();
  for (const signal of signals) process.once(signal, onSignal);
  await promise;
  for (const signal of signals) process.off(signal, onSignal);
  clearInterval(alive);
}

/** Opens the address in a browser. Fails silently without one, because the address is also printed. */
export function openBrowser(url: string): void {
  const command = process.platform === "darwin" ? "open" : process.platform === "win32" ? "explorer" : "xdg-open";
  const child = spawn(command, [url], { stdio: "ignore", detached: true });
  child.on("error", () => undefined);
  child.unref();
}
