import { DEFAULT_TENANT } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { type CliContext, commandLine } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { placedRequests } from "../job/find-request.ts";
import { type StoreOptions, type StoreLocation, storeLocation, withStore } from "../job/store-location.ts";
import { pageSize } from "../options.ts";
import { type PlacedRequest, requestTable } from "../view/request-lines.ts";
import { columnsOf } from "../view/table.ts";

export interface RequestsOptions extends StoreOptions {
  readonly json?: boolean | undefined;
  /** Includes decided and closed requests. */
  readonly all?: boolean | undefined;
  readonly limit?: number | undefined;
  readonly after?: string | undefined;
}

/** Lists the open requests of a store in all its trees, oldest first. */
export async function requestsCommand(context: CliContext, options: RequestsOptions): Promise<ExitCode> {
  const { out, note } = context;
  const place = storeLocation(context, options);
  const { placed, hasMore } = await withStore(place, "openExisting", (stores) => requestPage(stores, options));
  if (options.json === true) {
    for (const { request, path } of placed) out(JSON.stringify({ ...request, path, cursor: request.requestId }));
  } else if (placed.length === 0) {
    out(nothingText(place, options));
  } else {
    const width = columnsOf(context);
    requestTable(placed, { now: Date.now(), width, withState: options.all === true }).forEach(out);
    const lines = wayOnLines(context, place, placed, hasMore ? moreWords(options, placed) : undefined);
    if (lines.length > 0) ["", ...lines, ...place.remarks].forEach(out);
    return exitCodes.success;
  }
  if (hasMore) [moreLine(context, place, moreWords(options, placed)), ...place.remarks].forEach(note);
  return exitCodes.success;
}

export interface RequestPage {
  readonly placed: readonly PlacedRequest[];
  readonly hasMore: boolean;
}

export async function requestPage(
  stores: Stores,
  { all, after, limit = pageSize.usual }: Pick<RequestsOptions, "all" | "after" | "limit">,
): Promise<RequestPage> {
  const status = all === true ? undefined : "open";
  const found = await stores.requests({ tenant: DEFAULT_TENANT, status, limit: limit + 1, after });
  return { placed: await placedRequests(stores, found.slice(0, limit)), hasMore: found.length > limit };
}

function nothingText({ name }: StoreLocation, { all, after }: RequestsOptions): string {
  if (after !== undefined) return `There are no more requests in ${name}.`;
  return all === true ? `There are no requests in ${name}.` : `Nothing in ${name} waits for a decision or an answer.`;
}

function moreWords({ all, limit }: RequestsOptions, placed: readonly PlacedRequest[]): readonly string[] {
  const isAll = all === true ? ["--all"] : [];
  const ofLimit = limit === undefined ? [] : ["--limit", String(limit)];
  return [...isAll, ...ofLimit, "--after", placed.at(-1)?.request.requestId ?? ""];
}

function moreLine({ invocation }: CliContext, place: StoreLocation, words: readonly string[]): string {
  return `More: ${commandLine(invocation, "requests", [...words, ...place.words])}`;
}

/** Commands to run next. */
function wayOnLines(
  context: CliContext,
  place: StoreLocation,
  placed: readonly PlacedRequest[],
  more: readonly string[] | undefined,
): string[] {
  const line = (command: string, ...words: string[]): string =>
    commandLine(context.invocation, command, [...words, ...place.words]);
  const isOpen = placed.some(({ request }) => request.status === "open");
  return [
    ...(more === undefined ? [] : [moreLine(context, place, more)]),
    ...(isOpen
      ? [`Decide with ${line("approve", "ID")}, or reject; answer questions with ${line("answer", "ID", "text")}.`]
      : []),
  ];
}
