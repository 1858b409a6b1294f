import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { commandLine } from "../invocation.ts";
import { openExistingStore, storeWords, withStore } from "../job/open-store.ts";
import { allRequests, placedRequests } from "../requests/all-requests.ts";
import { requestTable } from "../view/request-lines.ts";

export interface RequestsOptions {
  readonly store: string;
  readonly json?: boolean | undefined;
  /** Those that were decided or closed, too. */
  readonly all?: boolean | undefined;
}

/** What waits for somebody in a store, over all its trees, oldest first. */
export async function requestsCommand(context: CliContext, options: RequestsOptions): Promise<ExitCode> {
  const { out, invocation } = context;
  const isAll = options.all === true;
  const placed = await withStore(openExistingStore(options.store), async (stores) =>
    placedRequests(stores, await allRequests(stores, isAll ? {} : { status: "open" })),
  );
  if (options.json === true) {
    for (const { request, path } of placed) out(JSON.stringify({ ...request, path }));
    return exitCodes.success;
  }
  if (placed.length === 0) {
    out(isAll ? `Nothing was ever asked in ${options.store}.` : `Nothing in ${options.store} waits for anybody.`);
    return exitCodes.success;
  }
  requestTable(placed, Date.now(), isAll).forEach(out);
  if (placed.some(({ request }) => request.status === "open")) {
    const store = storeWords(options.store);
    const line = (command: string, ...words: string[]): string =>
      commandLine(invocation, command, [...words, ...store]);
    out("");
    out(`Decide with ${line("approve", "ID")}, or reject; answer questions with ${line("answer", "ID", "text")}.`);
  }
  return exitCodes.success;
}
