import type { Failure, FeedMessage } from "../feed/wire.ts";
import { type FeedActs, type FeedClient, FeedFailure, type WatchListener } from "./feed-client.ts";

const TOKEN_KEY = "troupe.token";
/** Path prefix of the feed on the server. */
const base = document.documentElement.dataset["base"] ?? "";
/** Most batches in flight. */
const CREDIT = 8;
const SHORTEST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;

/**
 * Returns the token. A token in the address is removed from it and stored for this tab, because a reload has no fragment.
 * A link without a token does not replace the stored one.
 */
export function takeToken(): string {
  const [, given] = /^#(?:.*&)?token=([^&]+)/.exec(location.hash) ?? [];
  if (given === undefined) return sessionStorage.getItem(TOKEN_KEY) ?? "";
  sessionStorage.setItem(TOKEN_KEY, given);
  const rest = location.hash.replace(/^#?&?token=[^&]+&?/, "#").replace(/&token=[^&]+/, "");
  history.replaceState(null, "", rest === "#" ? location.pathname : rest);
  return given;
}

export function feedOfServer(token: string, mayAct: boolean): FeedClient {
  const get = <Answer>(path: string, query: Query = {}, signal?: AbortSignal): Promise<Answer> =>
    ask<Answer>(token, `${path}${queryText(query)}`, signal ? { signal } : {});
  const post = <Answer>(path: string, body: object): Promise<Answer> =>
    ask<Answer>(token, path, { method: "POST", body: JSON.stringify(body) });
  const act: FeedActs = {
    decide: (requestId, body) => post(`/api/requests/${encodeURIComponent(requestId)}/decision`, body),
    pause: (agentId) => post(`${ofAgent(agentId)}/pause`, {}),
    resume: (agentId) => post(`${ofAgent(agentId)}/resume`, {}),
    abort: (agentId, body) => post(`${ofAgent(agentId)}/abort`, body),
    delete: (agentId) => post(`${ofAgent(agentId)}/delete`, {}),
    createAgent: (body) => post("/api/agents", body),
    startTurn: (agentId, body) => post(`${ofAgent(agentId)}/turns`, body),
    fork: (runId, body) => post(`${run(runId)}/fork`, body),
    replay: (runId) => post(`${run(runId)}/replay`, {}),
  };
  return {
    info: () => get("/api/info"),
    runs: (query) => get("/api/runs", { ...query }),
    watch: (runId, after, listener) => new Watch(token, runId, after, listener),
    transitions: (runId, agentId, page) => get(`${agent(runId, agentId)}/transitions`, { ...page }),
    messages: (runId, agentId, query) => get(`${agent(runId, agentId)}/messages`, { ...query }),
    prompts: async (runId, agentId) => itemsOf(await get(`${agent(runId, agentId)}/prompts`)),
    prompt: (runId, agentId, seq) => get(`${agent(runId, agentId)}/prompts/${seq}`),
    call: (runId, callId) => get(`${run(runId)}/calls/${encodeURIComponent(callId)}`),
    row: (runId, cursor) => get(`${run(runId)}/rows/${cursor}`),
    requests: async (runId) => itemsOf(await get(`${run(runId)}/requests`)),
    steps: (runId, after) => get(`${run(runId)}/steps`, { after }),
    forks: (runId) => get(`${run(runId)}/forks`),
    search: (runId, text, { after, signal }) => get(`${run(runId)}/search`, { text, after }, signal),
    storedAccounts: (runId) => get(`${run(runId)}/accounts`),
    processes: async () => itemsOf(await get("/api/processes")),
    schedules: async () => itemsOf(await get("/api/schedules")),
    queues: async () => {
      const answer = await get<ListAnswer<never> | null>("/api/queues");
      return answer === null ? null : itemsOf(answer);
    },
    evals: () => get("/api/evals"),
    evalRuns: async (key) => itemsOf(await get(`/api/evals/${encodeURIComponent(key)}`)),
    artifact: (runId, agentId, artifactId) =>
      get(`${agent(runId, agentId)}/artifacts/${encodeURIComponent(artifactId)}`),
    act: mayAct ? act : undefined,
  };
}

function run(runId: string): string {
  return `/api/runs/${encodeURIComponent(runId)}`;
}

function agent(runId: string, agentId: string): string {
  return `${run(runId)}/agents/${encodeURIComponent(agentId)}`;
}

function ofAgent(agentId: string): string {
  return `/api/agents/${encodeURIComponent(agentId)}`;
}

type Query = Readonly<Record<string, string | number | null | undefined>>;

function queryText(query: Query): string {
  const parts = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === null || value === "" ? [] : [`${name}=${encodeURIComponent(value)}`],
  );
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}

type ListAnswer<Item> = readonly Item[] | { readonly items: readonly Item[] };

function itemsOf<Item>(answer: ListAnswer<Item>): readonly Item[] {
  return "items" in answer ? answer.items : answer;
}

async function ask<Answer>(token: string, path: string, options: RequestInit): Promise<Answer> {
  const headers = { authorization: `Bearer ${token}`, ...(options.body ? { "content-type": "application/json" } : {}) };
  const send = () => fetch(base + path, { ...options, headers, cache: "no-store", credentials: "omit" });
  const response = await send()
    // A busy server may have closed a connection just as it was reused, so try again; but never repeat a request with a
    // body.
    .catch((cause: unknown) => (options.body || options.signal?.aborted === true ? Promise.reject(cause) : later(send)))
    .catch((cause: unknown) => {
      if (options.signal?.aborted === true) throw cause;
      throw new FeedFailure("unreachable", noServer);
    });
  if (response.status === 401) throw new FeedFailure(UNAUTHORIZED, noToken);
  if (response.status === 403) throw new FeedFailure("forbidden", "This link may only watch.");
  const body = response.status === 204 ? undefined : ((await response.json().catch(() => undefined)) as unknown);
  if (response.ok) return body as Answer;
  const { error } = (body ?? {}) as Partial<Failure>;
  const { code = `http_${response.status}`, message = `The server answered ${response.status}.` } = error ?? {};
  throw new FeedFailure(code, message, {
    ...(error?.issues ? { issues: error.issues } : {}),
    ...(error?.request ? { request: error.request } : {}),
  });
}

async function later<Answer>(send: () => Promise<Answer>): Promise<Answer> {
  await new Promise((resolve) => void setTimeout(resolve, SHORTEST_WAIT_MS));
  return await send();
}

const noServer = "The process that serves this page does not answer.";
const UNAUTHORIZED = "unauthorized";
const noToken = "The token of this address is missing or no longer valid. Open the address that the command printed.";

/**
 * One run over a WebSocket.
 * Owns: the socket and the cursor of the last delivered row. After a disconnect it continues after that row.
 */
class Watch {
  readonly #token: string;
  readonly #runId: string;
  readonly #listener: WatchListener;
  #cursor: number;
  #socket: WebSocket | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isEnded = false;
  /** Whether the server has started sending the run. */
  #isWatching = false;
  #waitMs = SHORTEST_WAIT_MS;

  constructor(token: string, runId: string, after: number, listener: WatchListener) {
    this.#token = token;
    this.#runId = runId;
    this.#cursor = after;
    this.#listener = listener;
    this.#listener.link({ kind: "connecting" });
    this.#connect();
  }

  end(): void {
    this.#isEnded = true;
    clearTimeout(this.#timer);
    this.#socket?.close();
  }

  #connect(): void {
    if (this.#isEnded) return;
    const address = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${base}/feed`;
    const socket = new WebSocket(address, ["troupe.feed.v1", `bearer.${this.#token}`]);
    this.#socket = socket;
    let isOpened = false;
    socket.addEventListener("open", () => {
      isOpened = true;
      this.#isWatching = false;
      this.#listener.link({ kind: "open" });
      socket.send(JSON.stringify({ type: "watch", run: this.#runId, after: this.#cursor, credit: CREDIT }));
    });
    socket.addEventListener("message", ({ data }) => this.#take(socket, JSON.parse(String(data)) as FeedMessage));
    socket.addEventListener("close", ({ reason }) => {
      if (isOpened) this.#lost(socket, { reason: reason || "The connection was cut." });
      else void this.#notOpened(socket);
    });
  }

  #take(socket: WebSocket, message: FeedMessage): void {
    if (this.#isEnded || socket !== this.#socket) return;
    if (message.type === "error" && message.code !== "unavailable") {
      this.#refuse(message.message);
      socket.close();
      return;
    }
    if (message.type !== "error") this.#isWatching = true;
    else if (!this.#isWatching) {
      // The stores did not answer the `watch` message, so the server does not watch the run.
      this.#lost(socket, { reason: message.message });
      socket.close();
      return;
    }
    this.#waitMs = SHORTEST_WAIT_MS;
    const room = this.#listener.message(message);
    if (message.type !== "rows") return;
    this.#cursor = message.head;
    const grant = (): void => {
      if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ type: "credit", batches: 1 }));
    };
    if (room) void room.then(grant);
    else grant();
  }

  /** Finds out why the socket was refused. Browsers hide the reason, so an ordinary request is sent. */
  async #notOpened(socket: WebSocket): Promise<void> {
    const info = {
      headers: { authorization: `Bearer ${this.#token}` },
      cache: "no-store",
      credentials: "omit",
    } as const;
    const status = await fetch(`${base}/api/info`, info).then(
      (answer) => answer.status,
      () => 0,
    );
    if (status === 401) this.#refuse(noToken);
    else this.#lost(socket, { reason: status === 0 ? noServer : "The server takes no further readers now." });
  }

  #refuse(why: string): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#listener.link({ kind: "refused", why });
  }

  #lost(socket: WebSocket, { reason }: { readonly reason: string }): void {
    if (this.#isEnded || socket !== this.#socket) return;
    this.#socket = undefined;
    const waitMs = this.#waitMs;
    this.#waitMs = Math.min(LONGEST_WAIT_MS, waitMs * 2);
    this.#listener.link({ kind: "cut", why: reason, retryAt: Date.now() + waitMs });
    this.#timer = setTimeout(() => this.#connect(), waitMs);
  }
}
