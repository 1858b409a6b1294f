import { createRuntime } from "../../runtime/index.ts";
import { serveMcp } from "../../server/mcp-server.ts";
import { type CliContext, userName } from "../cli-context.ts";
import type { ExitCode } from "../failure.ts";
import { workUntilTold } from "../job/leaving.ts";
import { keptOpen, type StoreOptions, storeLocation, withStore } from "../job/store-location.ts";
import { mcpStateKey } from "../serve/mcp-state-key.ts";
import { reserveStdout } from "../serve/reserved-stdout.ts";
import { type FileOptions, servedFiles } from "../serve/served-files.ts";
import { tealServed } from "./serve.ts";

export interface McpServeOptions extends StoreOptions, FileOptions {
  /** The owner of the client's turns. */
  readonly actor?: string | undefined;
  /** Longest wait of a call. */
  readonly waitSeconds?: number | undefined;
  readonly drainSeconds?: number | undefined;
}

/** Separate from the jobs of other commands, so that a server continues only its own agents. */
const mcpStorePath = "./.troupe/mcp.db";

/** Serves the agents of these files over standard input and output until the client or a signal ends it. */
export async function mcpServeCommand(
  context: CliContext,
  files: readonly string[],
  options: McpServeOptions,
): Promise<ExitCode> {
  // Before the files are loaded, because their code may print.
  const output = reserveStdout(process);
  const quiet: CliContext = { ...context, out: context.note };
  const served = await servedFiles(files, context, options);
  const { actor = userName(), waitSeconds, drainSeconds, store: path, redis, prefix } = options;
  const isNamed = [path, redis, prefix, context.environment["TROUPE_REDIS"]?.trim() || undefined].some(Boolean);
  const store = storeLocation(context, isNamed ? { store: path, redis, prefix } : { store: mcpStorePath });
  return await withStore(store, "open", async (stores) => {
    const sharing = await store.openSharing?.(stores);
    try {
      const runtime = await createRuntime({
        agents: served.agents,
        stores: keptOpen(stores),
        mayDecide: served.mayDecide,
      });
      try {
        const serving = await serveMcp(runtime, {
          agents: tealServed(served).map(({ definition, description }) => ({ definition, description })),
          waitMs: waitSeconds === undefined ? undefined : waitSeconds * 1_000,
          stateKey: await mcpStateKey(store, sharing),
        });
        await runtime.recover();
        const connection = serving.stdio({ actor, input: context.stdin, output });
        context.note(
          `Serving ${served.agents.map(({ name }) => name).join(", ")} over MCP as ${actor}; store ${store.name}.`,
        );
        return await workUntilTold(quiet, {
          drainSeconds,
          until: connection.closed.then(() => "the end of input"),
          plan: () => "no new calls, turns stop at a safe point.",
          atOnce: "running turns continue at the next start.",
          late: "it continues at the next start.",
          leave: async (ms) => {
            await serving.close();
            const { left } = await runtime.drain({ timeoutMs: ms });
            return left === 0
              ? "Left; nothing was cut off."
              : `Left; ${left} cut off, which continue at the next start.`;
          },
        });
      } catch (error) {
        await runtime.shutdown();
        throw error;
      }
    } finally {
      await sharing?.close();
    }
  });
}
