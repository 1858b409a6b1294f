import type { FeedInfo, PageData, RowView } from "../feed/wire.ts";
import type { JsonValue } from "./json-view.tsx";
import { type FeedClient, FeedFailure } from "./feed-client.ts";

/** The id of the element that holds the data: JSON, gzip, base64. `page-of-run.ts` writes it. */
const DATA_ELEMENT = "troupe-data";

/** The data in this page; undefined: it comes from a server. */
export async function dataInPage(): Promise<PageData | undefined> {
  const text = document.getElementById(DATA_ELEMENT)?.textContent ?? "";
  if (text.trim() === "") return undefined;
  const bytes = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return (await new Response(unpacked).json()) as PageData;
}

/** Rows in one message: folding them takes a frame or two. */
const ROWS_AT_A_TIME = 2_000;
const MESSAGES_AT_A_TIME = 50;

export function feedOfFile(data: PageData): FeedClient {
  const { run, agents, rows } = data;
  const head = rows.at(-1)?.cursor ?? 0;
  return {
    info: async () => infoOf(data),
    runs: async () => ({ items: [run], next: null }),
    watch(_runId, after, listener) {
      let isEnded = false;
      const send = async (): Promise<void> => {
        await Promise.resolve();
        listener.link({ kind: "open" });
        void listener.message({ type: "agents", run: run.runId, agents });
        const start = rows.findIndex(({ cursor }) => cursor > after);
        for (let from = Math.max(0, start); start >= 0 && from < rows.length && !isEnded; from += ROWS_AT_A_TIME) {
          const part = rows.slice(from, from + ROWS_AT_A_TIME);
          const isCaughtUp = from + part.length >= rows.length;
          const cursor = part.at(-1)?.cursor ?? head;
          await listener.message({ type: "rows", run: run.runId, rows: part, head: cursor, isCaughtUp });
          await new Promise((resolve) => setTimeout(resolve));
        }
      };
      void send();
      return { end: () => (isEnded = true) };
    },
    async machines(_runId, agentId, at) {
      const until = (data.transitions?.[agentId] ?? []).filter(({ cursor }) => at === null || cursor <= at);
      if (data.transitions === undefined) throw left("the states of its machines");
      const latest = new Map(until.map((transition) => [`${transition.machine} ${transition.id}`, transition]));
      const agent = until.findLast(({ machine }) => machine === "agent");
      const turn = until.findLast(({ machine }) => machine === "turn");
      const calls = [...latest.values()].filter(
        ({ machine, id }) => machine === "toolCall" && id.startsWith(turn?.id ?? "\0"),
      );
      return {
        agentId,
        cursor: until.at(-1)?.cursor ?? 0,
        agent: { value: agent?.to ?? "created" },
        turn: turn ? { turnId: turn.id, value: turn.to } : null,
        calls: calls.map(({ id, to }) => ({ callId: id, name: data.calls?.[id]?.name ?? "", value: to })),
        last: until.at(-1) ?? null,
      };
    },
    async transitions(_runId, agentId, { after = "0" }) {
      if (data.transitions === undefined) throw left("the states of its machines");
      const items = (data.transitions[agentId] ?? []).slice(Number(after));
      return { items, next: null };
    },
    async messages(_runId, agentId, { at, before, limit = MESSAGES_AT_A_TIME }) {
      if (data.messages === undefined) throw left("messages");
      const all = (data.messages[agentId] ?? []).filter(({ cursor }) => at === undefined || (cursor ?? 0) <= at);
      const end = before === undefined ? all.length : Number(before);
      const start = Math.max(0, end - limit);
      return { items: all.slice(start, end), next: start === 0 ? null : String(start) };
    },
    async prompts(_runId, agentId) {
      if (data.prompts === undefined) throw left("prompts");
      return data.prompts[agentId] ?? [];
    },
    async prompt(_runId, agentId, seq) {
      const prompt = data.prompts?.[agentId]?.find((one) => one.seq === seq);
      if (!prompt) throw left("this prompt");
      return prompt;
    },
    async call(_runId, callId) {
      const call = data.calls?.[callId];
      if (!call) throw left("the details of this call");
      return call;
    },
    async row(_runId, cursor): Promise<RowView> {
      const row = rows.find((one) => one.cursor === cursor);
      if (!row) throw left("this row");
      return { version: 1, ...row, entries: row.entries as unknown as JsonValue[] };
    },
    requests: async () => data.requests,
    async search() {
      throw new FeedFailure("left_out", "An exported file can be filtered, but its contents cannot be searched.");
    },
    storedAccounts: async () => ({ cursor: head, accounts: data.accounts, waiters: [] }),
    owners: async () => [],
    queues: async () => null,
    async artifact() {
      throw left("artifacts");
    },
  };
}

function left(what: string): FeedFailure {
  return new FeedFailure("left_out", `This file was exported without ${what}.`);
}

function infoOf({ run, namesOnly, exportedAt }: PageData): FeedInfo {
  return {
    version: "troupe.feed/1",
    scope: "watch",
    namesOnly,
    source: "file",
    stores: "file",
    tenant: "",
    text: "committed",
    definitions: [],
    hasQueues: false,
    now: exportedAt,
    run: run.runId,
  };
}
