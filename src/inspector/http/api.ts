import { z } from "zod";
import { NotFoundError, RequestConflictError } from "../../errors/index.ts";
import { type AgentRequest, agentOfTurn, callOfRequest, partsOfCall } from "../../state/index.ts";
import type { Feed } from "../feed/feed.ts";
import { LARGEST_PAGE } from "../feed/query-options.ts";
import {
  abortBodySchema,
  agentBodySchema,
  decisionBodySchema,
  forkBodySchema,
  type Scope,
  turnBodySchema,
} from "../feed/wire.ts";

/** A decision was rejected: it came too late or was for other arguments. Contains the current state of the request. */
export class FasterError extends RequestConflictError {
  readonly request: AgentRequest | undefined;

  constructor(cause: RequestConflictError, request: AgentRequest | undefined) {
    super(cause.message, { cause, details: cause.details });
    this.request = request;
  }
}

/** One HTTP request whose token was checked. */
export interface ApiCall {
  /** The decoded path segments at the `:` placeholders, in order. */
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
  readonly scope: Scope;
  /** The JSON body of a POST. */
  readonly body: unknown;
  /** Aborted once the client disconnects. */
  readonly signal: AbortSignal;
}

export interface ApiRoute {
  readonly method: "GET" | "POST";
  /** `:` matches any one segment. */
  readonly path: string;
  readonly scope: Scope;
  /** Resolves with the JSON of the answer; `undefined` is answered with status 204. */
  readonly answer: (call: ApiCall) => Promise<unknown>;
}

const limit = (most: number) => z.coerce.number().int().min(1).max(most).optional();
const cursor = z.coerce.number().int().nonnegative().optional();
const text = z.string().max(512).optional();

const runQuery = z.object({
  after: text,
  limit: limit(LARGEST_PAGE),
  text,
  status: text,
  model: text,
  agent: text,
  since: cursor,
  until: cursor,
});
const momentQuery = z.object({ at: cursor });
const afterQuery = z.object({
  after: z
    .string()
    .regex(/^\d{1,15}$/)
    .optional(),
});
const messageQuery = z.object({ at: cursor, before: text, limit: limit(LARGEST_PAGE) });
const requestQuery = z.object({ status: z.enum(["open", "decided", "closed"]).optional() });
const searchQuery = z.object({ text: z.string().max(512), after: cursor });
const stepQuery = z.object({ after: text });
const number = z.coerce.number().int().nonnegative();

type Answer = (call: ApiCall, ...parts: string[]) => Promise<unknown>;

function get(path: string, answer: Answer): ApiRoute {
  return { method: "GET", path, scope: "watch", answer: (call) => answer(call, ...call.parts) };
}

function post(path: string, answer: Answer): ApiRoute {
  return { method: "POST", path, scope: "act", answer: (call) => answer(call, ...call.parts) };
}

/** The routes of a feed: each path with the feed method that answers it. */
export function apiRoutes(feed: Feed, watchToken: string): readonly ApiRoute[] {
  const ofAgent = "/api/runs/:/agents/:";
  return [
    get("/api/info", async ({ scope }) => ({
      ...feed.info(scope),
      ...(scope === "act" ? { watchToken } : {}),
    })),
    get("/api/runs", ({ query }) => feed.runs(read(runQuery, query))),
    get("/api/runs/:", (_call, run = "") => feed.head(run)),
    get(`${ofAgent}/machines`, ({ query }, run = "", agent = "") =>
      feed.machines(run, agent, read(momentQuery, query).at ?? null),
    ),
    get(`${ofAgent}/transitions`, ({ query }, run = "", agent = "") =>
      feed.transitions(run, agent, read(afterQuery, query).after),
    ),
    get(`${ofAgent}/messages`, ({ query }, run = "", agent = "") =>
      feed.messages(run, agent, read(messageQuery, query)),
    ),
    get(`${ofAgent}/prompts`, async (_call, run = "", agent = "") => ({ items: await feed.prompts(run, agent) })),
    get(`${ofAgent}/prompts/:`, (_call, run = "", agent = "", seq = "") =>
      feed.prompt(run, agent, numberOf(seq, "prompt")),
    ),
    get(`${ofAgent}/artifacts/:`, (_call, run = "", agent = "", id = "") => feed.artifact(run, agent, id)),
    get("/api/runs/:/calls/:", (_call, run = "", call = "") => feed.call(run, call)),
    get("/api/runs/:/rows/:", (_call, run = "", row = "") => feed.row(run, numberOf(row, "row"))),
    get("/api/runs/:/requests", async ({ query }, run = "") => ({
      items: await feed.requests(run, read(requestQuery, query).status),
    })),
    get("/api/runs/:/search", ({ query, signal }, run = "") =>
      feed.search(run, { ...read(searchQuery, query), signal }),
    ),
    get("/api/runs/:/steps", ({ query }, run = "") => feed.steps(run, read(stepQuery, query).after)),
    get("/api/runs/:/forks", (_call, run = "") => feed.forks(run)),
    post("/api/runs/:/fork", async ({ body }, run = "") => {
      const wanted = forkBodySchema.parse(body);
      return await (await feed.forksIn(run)).fork(run, wanted);
    }),
    post("/api/runs/:/replay", (_call, run = "") => feed.replay(run)),
    get("/api/runs/:/accounts", (_call, run = "") => feed.storedAccounts(run)),
    get("/api/runs/:/owners", async (_call, run = "") => ({ items: await feed.owners(run) })),
    get("/api/processes", async () => ({ items: await feed.processes() })),
    get("/api/schedules", async () => ({ items: await feed.schedules() })),
    get("/api/queues", async () => {
      const items = await feed.queues();
      return items === null ? null : { items };
    }),
    get("/api/evals", () => feed.evals()),
    get("/api/evals/:", async (_call, key = "") => ({ items: await feed.evalRuns(key) })),
    get("/api/runs/:/export", (_call, run = "") => feed.export(run)),
    post("/api/requests/:/decision", async ({ body }, requestId = "") => {
      const decision = decisionBodySchema.parse(body);
      const actor = await feed.actor(agentOfTurn(partsOfCall(callOfRequest(requestId)).turnId));
      await actor.decide(requestId, decision).catch(async (error: unknown) => {
        throw error instanceof RequestConflictError ? new FasterError(error, await feed.request(requestId)) : error;
      });
    }),
    post("/api/agents/:/pause", async (_call, agent = "") => (await feed.actor(agent)).pause(agent)),
    post("/api/agents/:/resume", async (_call, agent = "") => (await feed.actor(agent)).resume(agent)),
    post("/api/agents/:/abort", async ({ body }, agent = "") => {
      const { reason = "aborted from the inspector" } = abortBodySchema.parse(body);
      await (await feed.actor(agent)).abort(agent, reason);
    }),
    post("/api/agents/:/delete", async (_call, agent = "") => (await feed.actor(agent)).delete(agent)),
    post("/api/agents", async ({ body }) => {
      const wanted = agentBodySchema.parse(body);
      return await feed.talk(wanted.definition).createAgent(wanted);
    }),
    post("/api/agents/:/turns", async ({ body }, agent = "") => {
      const turn = turnBodySchema.parse(body);
      const { talk } = await feed.actor(agent);
      if (!talk) throw new NotFoundError(`agent "${agent}" cannot be talked to here: this process does not run it`);
      return await talk.startTurn(agent, turn);
    }),
  ];
}

function read<Schema extends z.ZodObject>(schema: Schema, query: URLSearchParams): z.infer<Schema> {
  return schema.parse(Object.fromEntries(query));
}

function numberOf(part: string, what: string): number {
  const parsed = number.safeParse(part);
  if (parsed.success) return parsed.data;
  throw new NotFoundError(`there is no ${what} "${part}"`);
}

/** The path segments at the route's `:` placeholders; `undefined` if the path does not match the route. */
export function partsIn(path: string, route: string): readonly string[] | undefined {
  const names = path.split("/");
  const wanted = route.split("/");
  if (names.length !== wanted.length) return undefined;
  const parts: string[] = [];
  for (const [index, name] of names.entries()) {
    if (wanted[index] === ":") {
      const part = decoded(name);
      if (part === undefined || part === "") return undefined;
      parts.push(part);
    } else if (wanted[index] !== name) return undefined;
  }
  return parts;
}

function decoded(name: string): string | undefined {
  try {
    return decodeURIComponent(name);
  } catch {
    return undefined;
  }
}
