import { signal } from "@preact/signals";

export const views = ["timeline", "chart", "messages", "events", "budgets", "requests", "talk"] as const;
export type View = (typeof views)[number];

/** A place on the page; the address holds it, never the token. */
export interface Route {
  readonly page: "runs" | "run" | "queues" | "compare";
  readonly runId: string;
  /** The second run of a comparison; empty: none is chosen. */
  readonly otherId: string;
  /** `CURSOR`, or `CURSOR.N` for the first N entries of its row; null: the newest. */
  readonly at: string | null;
  readonly agent: string | null;
  readonly view: View;
}

const start: Route = { page: "runs", runId: "", otherId: "", at: null, agent: null, view: "timeline" };

export const route = signal<Route>(start);

function routeOf(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#/, "").split("?");
  const [, page, id = "", otherId = ""] = path.split("/");
  if (page === "queues") return { ...start, page };
  if (page === "compare") return { ...start, page, runId: decoded(id), otherId: decoded(otherId) };
  if (page !== "run") return start;
  const fields = new URLSearchParams(query);
  const view = views.find((name) => name === fields.get("view")) ?? "timeline";
  return { ...start, page, runId: decoded(id), at: fields.get("at"), agent: fields.get("agent"), view };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function hashOf({ page, runId, otherId, at, agent, view }: Route): string {
  if (page === "compare") return `#/compare/${encodeURIComponent(runId)}/${encodeURIComponent(otherId)}`;
  if (page !== "run") return `#/${page}`;
  const fields = new URLSearchParams();
  if (at !== null) fields.set("at", at);
  if (agent !== null) fields.set("agent", agent);
  fields.set("view", view);
  return `#/run/${encodeURIComponent(runId)}?${fields.toString()}`;
}

export function startRouting(): void {
  route.value = routeOf(location.hash);
  addEventListener("hashchange", () => {
    route.value = routeOf(location.hash);
  });
}

/** Goes to another place, which the browser's Back button leaves again. */
export function go(change: Partial<Route>): void {
  set(change, "pushState");
}

/** Changes the address of the same place. */
export function note(change: Partial<Route>): void {
  set(change, "replaceState");
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
