import { resolve } from "node:path";
import { InvalidInputError } from "../../errors/index.ts";
import { Feed, pageOfRun, traceOfRun } from "../../inspector/index.ts";
import { DEFAULT_TENANT } from "../../state/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { findAgent } from "../job/find-agent.ts";
import { type StoreOptions, storeLocation, withStore } from "../job/store-location.ts";
import { assertWritable, writePrivateFile } from "./written-file.ts";

export interface ExportOptions extends StoreOptions {
  readonly json?: string | undefined;
  readonly html?: string | undefined;
  readonly trace?: string | undefined;
  readonly namesOnly?: boolean | undefined;
  /** Overwrites existing files. */
  readonly force?: boolean | undefined;
}

/** Writes a run to files: in full, as a page, or as a trace. */
export async function exportCommand(context: CliContext, text: string, options: ExportOptions): Promise<ExitCode> {
  const { json, html, trace, namesOnly, force = false } = options;
  const paths = [json, html, trace].filter((path) => path !== undefined);
  if (paths.length === 0) {
    throw new InvalidInputError("give the file to write: --json FILE, --html FILE or --trace FILE");
  }
  if (new Set(paths.map((path) => resolve(context.directory, path))).size < paths.length) {
    throw new InvalidInputError("two formats have the same file; give each its own");
  }
  for (const path of paths) await assertWritable(context, path, force);
  return await withStore(storeLocation(context, options), "openExisting", async (stores) => {
    const { rootAgentId } = await findAgent(stores, text);
    const feed = new Feed({ namesOnly });
    feed.add({ stores, tenant: DEFAULT_TENANT });
    if (html !== undefined) await write(context, html, await pageOfRun(feed, rootAgentId));
    if (json !== undefined) await write(context, json, `${JSON.stringify(await feed.export(rootAgentId))}\n`);
    if (trace !== undefined) await write(context, trace, `${JSON.stringify(await traceOfRun(feed, rootAgentId))}\n`);
    return exitCodes.success;
  });
}

async function write(context: CliContext, path: string, content: string): Promise<void> {
  await writePrivateFile(context, path, content);
  context.out(`Written: ${path}`);
}
