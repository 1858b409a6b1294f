import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { InvalidInputError } from "../../errors/index.ts";
import { Feed, traceOfRun } from "../../inspector/index.ts";
import { DEFAULT_TENANT } from "../../state/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { findAgent } from "../job/find-agent.ts";
import { type StoreOptions, storePlace, withStore } from "../job/store-place.ts";

export interface ExportOptions extends StoreOptions {
  readonly json?: string | undefined;
  readonly trace?: string | undefined;
  readonly namesOnly?: boolean | undefined;
}

/** Writes a run into files: whole, to inspect it elsewhere, or as a trace. */
export async function exportCommand(context: CliContext, text: string, options: ExportOptions): Promise<ExitCode> {
  const { json, trace, namesOnly } = options;
  if (json === undefined && trace === undefined) {
    throw new InvalidInputError("give the file to write: --json FILE, or --trace FILE");
  }
  return await withStore(storePlace(context, options), "openExisting", async (stores) => {
    const { rootAgentId } = await findAgent(stores, text);
    const feed = new Feed({ namesOnly });
    feed.add({ stores, tenant: DEFAULT_TENANT });
    if (json !== undefined) await write(context, json, await feed.export(rootAgentId));
    if (trace !== undefined) await write(context, trace, await traceOfRun(feed, rootAgentId));
    return exitCodes.success;
  });
}

async function write({ directory, out }: CliContext, path: string, value: unknown): Promise<void> {
  await writeFile(resolve(directory, path), `${JSON.stringify(value)}\n`).catch((cause: unknown) => {
    throw new InvalidInputError(`${path} cannot be written: ${String(cause)}`, { cause });
  });
  out(`Written: ${path}`);
}
