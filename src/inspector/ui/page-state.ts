import { computed, effect, signal, untracked } from "@preact/signals";
import type { FeedInfo } from "../feed/wire.ts";
import { type AgentOrder, agentOrders } from "../run-model/agent-order.ts";
import { type AgentState, agentStates } from "../run-model/tree-rows.ts";
import { type FeedClient, errorText } from "./feed-client.ts";
import { RunSession } from "./run-session.ts";

export const views = [
  "summary",
  "timeline",
  "chart",
  "messages",
  "events",
  "budgets",
  "requests",
  "talk",
  "forks",
] as const;
export type View = (typeof views)[number];

/** A location in the page. The address contains it, without the token. */
export interface Route {
  readonly page: "runs" | "costs" | "run" | "queues" | "compare" | "evals";
  readonly runId: string;
  /** The second run of a comparison; empty if none is chosen. */
  readonly otherId: string;
  /** `CURSOR`, or `CURSOR.N` for the first N entries of its row; `null` for the newest moment. */
  readonly at: string | null;
  readonly agent: string | null;
  readonly view: View;
  /** The open bar of the timeline, as the address of the moment at which it begins; `null` if no bar is open. */
  readonly span: string | null;
  /** The point at which the form of the forks begins: `TURN:STEP`, or `TURN` for its end; `null` for the last one. */
  readonly fork: string | null;
  /** The `key` of a row of costs; only the runs that it sums up are listed. `null` for all runs. */
  readonly spent: string | null;
  /** Key of the case of evals whose runs are listed; `null` if none is open. */
  readonly evalCase: string | null;
  /** Filter of the agents in all views. */
  readonly filter: string;
  readonly state: AgentState | null;
  readonly order: AgentOrder;
  /** Show only agents on the critical path. */
  readonly isCritical: boolean;
}

/** All agents, in creation order. */
export const allAgents = { filter: "", state: null, isCritical: false } as const;

const start: Route = {
  page: "runs",
  runId: "",
  otherId: "",
  at: null,
  agent: null,
  view: "timeline",
  span: null,
  fork: null,
  spent: null,
  evalCase: null,
  order: "start",
  ...allAgents,
};

export const route = signal<Route>(start);

function routeOf(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#/, "").split("?");
  const [, page, id = "", otherId = ""] = path.split("/");
  if (page === "queues") return { ...start, page };
  if (page === "compare") return { ...start, page, runId: decoded(id), otherId: decoded(otherId) };
  const fields = new URLSearchParams(query);
  if (page === "evals") return { ...start, page, evalCase: fields.get("case") };
  if (page !== "run") return { ...start, page: page === "costs" ? page : "runs", spent: fields.get("spent") };
  return {
    ...start,
    page,
    runId: decoded(id),
    at: fields.get("at"),
    agent: fields.get("agent"),
    view: views.find((name) => name === fields.get("view")) ?? start.view,
    span: fields.get("span"),
    fork: fields.get("fork"),
    filter: fields.get("filter") ?? "",
    state: agentStates.find((name) => name === fields.get("state")) ?? null,
    order: agentOrders.find((name) => name === fields.get("order")) ?? "start",
    isCritical: fields.has("critical"),
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function hashOf(shown: Route): string {
  const { page, runId, otherId, at, agent, view, span, fork, spent, evalCase, filter, state, order, isCritical } =
    shown;
  if (page === "compare") return `#/compare/${encodeURIComponent(runId)}/${encodeURIComponent(otherId)}`;
  if (page === "evals") return `#/evals${evalCase === null ? "" : `?case=${encodeURIComponent(evalCase)}`}`;
  if (page !== "run") return `#/${page}${spent === null ? "" : `?spent=${encodeURIComponent(spent)}`}`;
  const fields = new URLSearchParams();
  if (at !== null) fields.set("at", at);
  if (agent !== null) fields.set("agent", agent);
  fields.set("view", view);
  if (span !== null) fields.set("span", span);
  if (fork !== null && view === "forks") fields.set("fork", fork);
  if (filter !== "") fields.set("filter", filter);
  if (state !== null) fields.set("state", state);
  if (order !== "start") fields.set("order", order);
  if (isCritical) fields.set("critical", "1");
  return `#/run/${encodeURIComponent(runId)}?${fields.toString()}`;
}

export function startRouting(): void {
  route.value = routeOf(location.hash);
  addEventListener("hashchange", () => {
    route.value = routeOf(location.hash);
  });
}

/** Navigates and adds an entry to the browser history. */
export function go(change: Partial<Route>): void {
  set(change, "pushState");
}

/** Changes the address without a new history entry. */
export function note(change: Partial<Route>): void {
  set(change, "replaceState");
}

let noteTimer: ReturnType<typeof setTimeout> | undefined;

/** Like `note`, for values that change with each key; the address is updated a little later. */
export function noteSoon(change: Partial<Route>): void {
  route.value = { ...route.peek(), ...change };
  clearTimeout(noteTimer);
  noteTimer = setTimeout(() => note({}), ADDRESS_EVERY_MS);
}

function set(change: Partial<Route>, how: "pushState" | "replaceState"): void {
  const next = { ...route.peek(), ...change };
  const hash = hashOf(next);
  if (hash !== location.hash) history[how](null, "", hash);
  route.value = next;
}

export function addressOf(change: Partial<Route>): string {
  return hashOf({ ...route.peek(), ...change });
}

/** The page's data source; `undefined` until it has answered. */
export const client = signal<FeedClient | undefined>(undefined);
export const info = signal<FeedInfo | undefined>(undefined);
/** The actions that this link currently allows; `undefined` if it is read-only. */
export const acts = computed(() =>
  info.value === undefined || info.value.acts === "none" ? undefined : client.value?.act,
);
/** Why the page cannot show anything. */
export const startFailure = signal<string | null>(null);
export const session = signal<RunSession | undefined>(undefined);
export const isHelpOpen = signal(false);
/** Confirmation of the last action. */
export const notice = signal<string | null>(null);

/** Index of the selected agent in the log; -1 if none is selected. */
export const selectedAgent = computed(() => {
  const run = session.value;
  if (!run) return -1;
  const count = run.length.value;
  const { agent } = route.value;
  return count === 0 ? -1 : run.log.indexOfAgent(agent ?? run.runId);
});

export function selectAgent(agentId: string): void {
  go({ agent: agentId });
}

let noticeTimer: ReturnType<typeof setTimeout> | undefined;

export function say(text: string): void {
  notice.value = text;
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => {
    notice.value = null;
  }, 4_000);
}

export async function copyText(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say(`${what} copied`);
  } catch {
    say(`The browser did not let ${what} be copied`);
  }
}

/** Copies a link to the current location, with the read-only token. */
export async function copyWatchLink(token: string): Promise<void> {
  const place = location.hash.replace(/^#/, "");
  const link = `${location.origin}${location.pathname}#token=${token}${place === "" ? "" : `&${place}`}`;
  await copyText(link, "View-only link");
}

/** When `info` was read, by this machine's clock. */
let readAt = 0;

/** Opens the location in the address, and keeps the address and the moment in sync. */
export async function startPage(feed: FeedClient): Promise<void> {
  try {
    info.value = await feed.info();
    readAt = Date.now();
  } catch (error) {
    startFailure.value = errorText(error);
    return;
  }
  client.value = feed;
  if (info.value.source !== "file") setInterval(() => void readInfo(feed), INFO_EVERY_MS);
  const { run, hasEvals } = info.value;
  if (location.hash.replace(/^#\/?/, "") === "") {
    if (run !== undefined) note({ page: "run", runId: run });
    else if (hasEvals) note({ page: "evals" });
  }
  const openRun = computed(() => (route.value.page === "run" ? route.value.runId : ""));
  effect(() => {
    const runId = openRun.value;
    untracked(() => {
      session.value?.end();
      session.value = runId === "" ? undefined : new RunSession(feed, runId, { aheadMs: clockAheadMs() });
    });
  });
  effect(followAddress);
  effect(writeAddress);
}

/** Poll interval of `info`, because the allowed actions change when a runtime is shut down. */
const INFO_EVERY_MS = 3_000;

async function readInfo(feed: FeedClient): Promise<void> {
  const { now: _then, ...known } = info.peek() ?? {};
  const next = await feed.info().catch(() => undefined);
  if (!next) return;
  const { now: _now, ...found } = next;
  if (JSON.stringify(found) !== JSON.stringify(known)) info.value = next;
}

/** `null` for an exported run. */
function clockAheadMs(): number | null {
  const { source, now } = info.peek() ?? {};
  return source === "file" || now === undefined ? null : now - readAt;
}

/** Shows the moment in the address after the reader opened the address or went back to it. */
function followAddress(): void {
  const run = session.value;
  const { at } = route.value;
  if (!run?.isCaughtUp.value || at === written) return;
  written = at;
  untracked(() => {
    const outside = at === null ? null : run.placeOutside(at);
    if (outside !== null) {
      // Open the window of the run that contains the moment.
      written = null;
      showWindow(run, outside);
      return;
    }
    const count = at === null ? null : run.countAt(at);
    if (count === null) run.goLive();
    else run.pin(count);
  });
}

/** Shows another window of a run that does not fit in the page. */
export function showWindow(run: RunSession, place: number | "newest"): void {
  session.value = run.windowAt(place);
}

export function goLive(run: RunSession): void {
  if (run.isPast.peek()) showWindow(run, "newest");
  else run.goLive();
}

let written: string | null = null;
let addressTimer: ReturnType<typeof setTimeout> | undefined;
/** Browsers reject more than about 100 address changes in 30 s. */
const ADDRESS_EVERY_MS = 400;

function writeAddress(): void {
  const run = session.value;
  if (!run?.isCaughtUp.value) return;
  const at = run.addressOfMoment();
  clearTimeout(addressTimer);
  addressTimer = setTimeout(() => {
    if (session.peek() !== run || at === written) return;
    written = at;
    note({ at });
  }, ADDRESS_EVERY_MS);
}
