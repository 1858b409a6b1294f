import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { type SseFrame, sseFrames } from "../../test/support/sse-frames.ts";
import { withRedis } from "../ground.ts";
import { type ChaosOptions, type ChaosReport, type ChaosScenario, reportOf } from "../scenario.ts";
import { type ServeProcess, startServe } from "../serving/serve-process.ts";
import { lastWord, type SlowModel, startSlowModel } from "../serving/slow-model.ts";
import { isOnRedis, redisPlace } from "../stores-at.ts";
import { steadyNow } from "../witness.ts";

const ROUNDS = 10;
const SHORT_ROUNDS = 1;
const LEASE_MS = 10_000;
/** Most time for the end of a stream: an answer takes three seconds, and a busy machine is slow. */
const GRACE_MS = 8_000;

/**
 * Kills one of two `troupe serve` on one Redis, without queues, while clients of every wire read streams. A round is one
 * death.
 */
export const survivor: ChaosScenario = {
  name: "SURVIVOR",
  title: "one of two servers is killed under streams of every wire: streams at the other end by themselves",
  on: ["redis"],
  run: async (options) => {
    const model = await startSlowModel();
    try {
      return await withRedis({}, async ({ url }) => await runRounds(options, model, url));
    } finally {
      await model.close();
    }
  },
};

async function runRounds(
  { seed, short, rounds = short ? SHORT_ROUNDS : ROUNDS, progress }: ChaosOptions,
  model: SlowModel,
  url: string,
): Promise<ChaosReport> {
  const violations: string[] = [];
  const endedMs: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const found = await killed(model, redisPlace(url, `survivor-${round}:`));
    violations.push(...found.violations.map((text) => `round ${round}: ${text}`));
    endedMs.push(...found.endedMs);
    progress(`${round + 1}/${rounds}: ended ${found.endedMs.join(", ")} ms after the death`);
  }
  const counts = { operations: rounds * wires.length, succeeded: endedMs.length, violations };
  return reportOf({ name: survivor.name, seed }, counts, { endedMs });
}

/** The options of `troupe serve` for a store location. */
export function streamedWords(place: string): string[] {
  const [url = "", prefix = ""] = place.split("#");
  return isOnRedis(place) ? ["--redis", url, "--prefix", prefix] : ["--store", place];
}

interface Found {
  /** For each wire, when its stream at the survivor ended after the kill. */
  readonly endedMs: readonly number[];
  readonly violations: readonly string[];
}

async function killed(model: SlowModel, place: string): Promise<Found> {
  const serving = { store: streamedWords(place), modelURL: model.baseURL, isContained: false };
  const [doomed, other] = await Promise.all([startServe(serving), startServe(serving)]);
  try {
    const calls = model.calls.length;
    const begun = await Promise.all(wires.map((wire) => begin(wire, doomed)));
    while (model.calls.length < calls + wires.length) await delay(20);
    const watched = await Promise.all(begun.map(({ wire, talk, known }) => wire.watch(other.url, talk, known)));
    const ends = watched.map(async (response, index) => await heardOf(wires[index], response));
    await delay(300);
    await doomed.kill();
    const diedAt = steadyNow();
    const late = delay(1.5 * LEASE_MS + GRACE_MS, undefined, { ref: false });
    const heard = await Promise.all(ends.map((end) => Promise.race([end, late])));
    // Only now the clients of the dead server reconnect, each to its own turn.
    const resumed = await Promise.all(begun.map(async (one) => await resume(one, other)));
    const turns = await turnsAt(other);
    return {
      endedMs: heard.flatMap((one) => (one?.isWhole === true ? [Math.round(one.at - diedAt)] : [])),
      violations: [
        ...wires.flatMap(({ name }, index) =>
          heard[index]?.isWhole === true ? [] : [`${name}: no end at the survivor`],
        ),
        ...wires.flatMap(({ name }, index) =>
          resumed[index] === true ? [] : [`${name}: no end for a client that came back`],
        ),
        ...(turns.length === wires.length && turns.every((status) => status === "completed")
          ? []
          : [`${wires.length} turns were asked for; there are ${turns.length}: ${turns.join(", ")}`]),
        ...(model.calls.length === calls + 2 * wires.length ? [] : [`${model.calls.length - calls} model calls`]),
      ],
    };
  } finally {
    await other.kill();
  }
}

/** A client's data of the turn that it began at the killed server. */
interface Begun {
  readonly wire: Wire;
  readonly talk: Talk;
  /** The turn's name from the first frame. */
  readonly known: string;
  /** The id of the last frame received. */
  readonly lastId: () => string;
}

async function begin(wire: Wire, { url }: ServeProcess): Promise<Begun> {
  const talk = await wire.open(url);
  const frames = sseFrames(await wire.send(url, talk));
  let lastId = "";
  let known = "";
  while (known === "") {
    const { value } = await frames.next();
    if (!value) throw new Error(`${wire.name}: the stream ended before it named its turn`);
    known = wire.nameIn(value, talk);
    lastId = wire.idOf(value) ?? lastId;
  }
  // Keeps reading until the server dies.
  void (async () => {
    for await (const frame of frames) lastId = wire.idOf(frame) ?? lastId;
  })().catch(() => undefined);
  return { wire, talk, known, lastId: () => lastId };
}

async function resume({ wire, talk, known, lastId }: Begun, { url }: ServeProcess): Promise<boolean> {
  const late = delay(GRACE_MS, undefined, { ref: false });
  const heard = await Promise.race([heardOf(wire, await wire.resume(url, talk, { known, lastId: lastId() })), late]);
  return heard?.isWhole === true;
}

/** Reads a stream to the end of its turn. */
async function heardOf(
  wire: Wire | undefined,
  response: Response,
): Promise<{ readonly isWhole: boolean; readonly at: number }> {
  let text = "";
  for await (const frame of sseFrames(response)) {
    text += frame.data;
    if (wire?.isEnd(frame) === true) break;
  }
  return { isWhole: text.includes(lastWord), at: steadyNow() };
}

async function turnsAt({ url }: ServeProcess): Promise<string[]> {
  const { items } = (await (await fetch(`${url}/api/turns`)).json()) as {
    items: readonly { readonly status: string }[];
  };
  return items.map(({ status }) => status);
}

/** Names chosen by the client. */
interface Talk {
  readonly conversation: string;
  readonly key: string;
  /** Names of troupe's own API. */
  readonly agentId: string;
}

/** Requests of a wire: begin a turn, watch a turn that another client began, and return to one's own turn. */
interface Wire {
  readonly name: string;
  readonly open: (url: string) => Promise<Talk>;
  readonly send: (url: string, talk: Talk) => Promise<Response>;
  /** The name of the turn for later requests; empty if the frame does not contain it. */
  readonly nameIn: (frame: SseFrame, talk: Talk) => string;
  readonly idOf: (frame: SseFrame) => string | undefined;
  readonly watch: (url: string, talk: Talk, known: string) => Promise<Response>;
  readonly resume: (
    url: string,
    talk: Talk,
    at: { readonly known: string; readonly lastId: string },
  ) => Promise<Response>;
  readonly isEnd: (frame: SseFrame) => boolean;
}

async function ask(url: string, body?: object, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  const method = body === undefined ? "GET" : "POST";
  const type: Record<string, string> = body === undefined ? {} : { "content-type": "application/json" };
  const request = { method, headers: { accept: "text/event-stream", ...type, ...headers } };
  const response = await fetch(url, body === undefined ? request : { ...request, body: JSON.stringify(body) });
  if (response.status >= 300) throw new Error(`${url} was answered ${response.status}: ${await response.text()}`);
  return response;
}

const named = async (): Promise<Talk> => ({ conversation: randomUUID(), key: randomUUID(), agentId: "" });
const idOf = ({ id }: SseFrame): string | undefined => id;
const parsed = ({ data }: SseFrame): Record<string, unknown> =>
  (data.startsWith("{") ? JSON.parse(data) : {}) as Record<string, unknown>;

const api: Wire = {
  name: "the own API",
  open: async (url) => {
    const created = await ask(`${url}/api/agents`, { definition: "slow" }, { accept: "application/json" });
    return { ...(await named()), agentId: ((await created.json()) as Talk).agentId };
  },
  send: (url, { agentId, key }) =>
    ask(`${url}/api/agents/${agentId}/turns`, { input: "go" }, { "idempotency-key": key }),
  nameIn: (_frame, { agentId }) => agentId,
  idOf,
  watch: (url, { agentId }) => ask(`${url}/api/trees/${agentId}/events`),
  resume: (url, { agentId }, { lastId }) =>
    ask(`${url}/api/agents/${agentId}/turns/1`, undefined, lastId === "" ? {} : { "last-event-id": lastId }),
  isEnd: ({ event }) => event === "turn.completed",
};

const a2aVersion = { "a2a-version": "1.0" };
const a2a: Wire = {
  name: "A2A",
  open: named,
  send: (url, { conversation: contextId, key: messageId }) => {
    const message = { messageId, contextId, role: "ROLE_USER", parts: [{ text: "go" }] };
    return ask(`${url}/a2a/slow/message:stream`, { message }, a2aVersion);
  },
  nameIn: (frame) => (parsed(frame)["task"] as { readonly id?: string } | undefined)?.id ?? "",
  idOf,
  watch: (url, _talk, task) => ask(`${url}/a2a/slow/tasks/${task}:subscribe`, undefined, a2aVersion),
  resume: (url, { conversation: contextId, key: messageId }) => {
    const message = { messageId, contextId, role: "ROLE_USER", parts: [{ text: "go" }] };
    return ask(`${url}/a2a/slow/message:stream`, { message }, a2aVersion);
  },
  isEnd: ({ data }) => data.includes("TASK_STATE_COMPLETED"),
};

const responses: Wire = {
  name: "Responses",
  open: named,
  send: (url, { key }) =>
    ask(`${url}/v1/responses`, { model: "slow", input: "go", stream: true }, { "idempotency-key": key }),
  nameIn: (frame) => (parsed(frame)["response"] as { readonly id?: string } | undefined)?.id ?? "",
  idOf: (frame) => (parsed(frame)["sequence_number"] as number | undefined)?.toString(),
  watch: (url, _talk, response) => ask(`${url}/v1/responses/${response}?stream=true`),
  resume: (url, _talk, { known, lastId }) => ask(`${url}/v1/responses/${known}?stream=true&starting_after=${lastId}`),
  isEnd: (frame) => parsed(frame)["type"] === "response.completed",
};

const agUi: Wire = {
  name: "AG-UI",
  open: named,
  send: (url, { conversation: threadId, key: runId }) =>
    ask(`${url}/ag-ui/slow`, { threadId, runId, messages: [{ id: runId, role: "user", content: "go" }] }),
  nameIn: (_frame, { conversation }) => conversation,
  idOf,
  watch: (url, { conversation: threadId }) => ask(`${url}/ag-ui/slow`, { threadId, runId: randomUUID(), messages: [] }),
  resume: (url, talk) => agUi.send(url, talk),
  isEnd: (frame) => parsed(frame)["type"] === "RUN_FINISHED",
};

const aiSdk: Wire = {
  name: "AI SDK",
  open: named,
  send: (url, { conversation: id, key }) =>
    ask(`${url}/ai-sdk/slow`, { id, messages: [{ id: key, role: "user", parts: [{ type: "text", text: "go" }] }] }),
  nameIn: (frame) => (parsed(frame)["messageId"] as string | undefined) ?? "",
  idOf,
  watch: (url, { conversation }, message) =>
    ask(`${url}/ai-sdk/slow/${conversation}/stream?message=${encodeURIComponent(message)}`),
  resume: (url, talk) => aiSdk.send(url, talk),
  isEnd: (frame) => parsed(frame)["type"] === "finish",
};

const teal: Wire = {
  name: "Teal Agents",
  open: named,
  send: (url, { key }) => {
    const body = { task_id: null, items: [{ content_type: "text", content: "go" }] };
    return ask(`${url}/slow/1.0/sse`, body, { "idempotency-key": key });
  },
  nameIn: (_frame, { key }) => key,
  idOf,
  watch: (url, talk) => teal.send(url, talk),
  resume: (url, talk) => teal.send(url, talk),
  isEnd: ({ event }) => event === "final-response",
};

const wires: readonly Wire[] = [api, a2a, responses, agUi, aiSdk, teal];
