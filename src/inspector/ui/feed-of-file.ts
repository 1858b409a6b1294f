import type {
  CallDetail,
  FeedInfo,
  FeedMessageItem,
  FeedRow,
  PackedContents,
  PackedHead,
  Prompt,
  RowView,
  Transition,
} from "../feed/wire.ts";
import { type FeedClient, FeedFailure, errorText } from "./feed-client.ts";
import { otherTasks, Slices } from "./slices.ts";
import type { JsonValue } from "./untrusted.tsx";

/** Id of the element with the data: lines of `packed-page.ts`, as base64 of gzip. */
const DATA_ELEMENT = "troupe-data";
/** Base64 characters decoded at once; a multiple of four. */
const LETTERS = 65_536;

/** The run in this page; `undefined` if the page comes from a server. */
export async function runInPage(): Promise<PackedRun | undefined> {
  const packed = document.getElementById(DATA_ELEMENT)?.textContent?.trim() ?? "";
  if (packed === "") return undefined;
  const lines = linesIn(packed);
  const { value: first } = await lines.next();
  if (!first?.startsWith("head ")) throw new Error("The data of this page is not whole; export the run again.");
  return new PackedRun(valueOf(first) as PackedHead, lines);
}

/**
 * A run that is read from its page line by line, in slices.
 * Owns: rows and contents. Contents are parsed only when a view needs them, because parsing takes most time and memory.
 */
export class PackedRun {
  readonly head: PackedHead;
  /** The rows read so far. */
  readonly rows: FeedRow[] = [];
  readonly #contents = new Map<string, string>();
  readonly #whole: Promise<void>;
  #moreRows = Promise.withResolvers<void>();

  constructor(head: PackedHead, lines: AsyncIterable<string>) {
    this.head = head;
    this.#whole = this.#read(lines);
  }

  get hasAllRows(): boolean {
    return this.rows.length >= this.head.rowCount;
  }

  /** Resolves when more rows are read. Rejects if the data is incomplete. */
  async moreRows(): Promise<void> {
    await Promise.race([this.#moreRows.promise, this.#whole]);
  }

  /** The contents of an agent or call; `undefined` if the page has none for this id. */
  async contentsOf<Value>(name: PackedContents, id: string): Promise<Value | undefined> {
    await this.#whole;
    const line = this.#contents.get(`${name} ${encodeURIComponent(id)}`);
    return line === undefined ? undefined : (valueOf(line) as Value);
  }

  async #read(lines: AsyncIterable<string>): Promise<void> {
    for await (const line of lines) {
      if (line.startsWith("rows ")) {
        for (const row of valueOf(line) as FeedRow[]) this.rows.push(row);
        this.#moreRows.resolve();
        this.#moreRows = Promise.withResolvers();
      } else this.#contents.set(line.slice(0, valueStart(line) - 1), line);
    }
    if (!this.hasAllRows) throw new Error("The data of this page is not whole; export the run again.");
  }
}

function valueStart(line: string): number {
  return line.indexOf(" ", line.indexOf(" ") + 1) + 1;
}

function valueOf(line: string): unknown {
  return JSON.parse(line.slice(valueStart(line)));
}

async function* linesIn(packed: string): AsyncGenerator<string, undefined> {
  const slices = new Slices();
  let from = 0;
  const bytes = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      if (from >= packed.length) return controller.close();
      const letters = atob(packed.slice(from, from + LETTERS));
      const part = new Uint8Array(letters.length);
      for (let index = 0; index < letters.length; index += 1) part[index] = letters.charCodeAt(index);
      from += LETTERS;
      return controller.enqueue(part);
    },
  });
  const reader = bytes.pipeThrough(new DecompressionStream("gzip")).pipeThrough(new TextDecoderStream()).getReader();
  // A line may span many pieces.
  let pieces: string[] = [];
  for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
    const [end = "", ...lines] = (value ?? "").split("\n");
    pieces.push(end);
    for (const next of lines) {
      yield pieces.join("");
      pieces = [next];
      await slices.pause();
    }
    await slices.pause();
  }
  const last = pieces.join("");
  if (last !== "") yield last;
  return undefined;
}

/** Rows per message; folding them takes one or two animation frames. */
const ROWS_AT_A_TIME = 2_000;
const MESSAGES_AT_A_TIME = 50;

/** The feed of a run in this page. Calls for contents that were left out reject with an error that names them. */
export function feedOfFile(page: PackedRun): FeedClient {
  const { head, rows } = page;
  const { run, agents, accounts } = head;
  const lastCursor = (): number => rows.at(-1)?.cursor ?? 0;
  const contentsOf = async <Value>(name: PackedContents, id: string): Promise<Value | undefined> => {
    if (!head.holds.includes(name)) throw left(contentWords[name]);
    return await page.contentsOf<Value>(name, id);
  };
  return {
    info: async () => infoOf(page),
    runs: async () => ({ items: [run], next: null }),
    watch(_runId, after, listener) {
      let isEnded = false;
      const send = async (): Promise<void> => {
        await Promise.resolve();
        listener.link({ kind: "open" });
        void listener.message({ type: "agents", run: run.runId, agents });
        let next = 0;
        let isCaughtUp = false;
        while (!isEnded && !isCaughtUp) {
          if (next >= rows.length && !page.hasAllRows) await page.moreRows();
          while ((rows[next]?.cursor ?? Number.POSITIVE_INFINITY) <= after) next += 1;
          const part = rows.slice(next, next + ROWS_AT_A_TIME);
          next += part.length;
          isCaughtUp = page.hasAllRows && next >= rows.length;
          const cursor = part.at(-1)?.cursor ?? lastCursor();
          await listener.message({ type: "rows", run: run.runId, rows: part, head: cursor, isCaughtUp });
          await otherTasks();
        }
      };
      send().catch((error: unknown) => listener.link({ kind: "refused", why: errorText(error) }));
      return { end: () => (isEnded = true) };
    },
    async transitions(_runId, agentId, { after = "0" }) {
      const all = (await contentsOf<readonly Transition[]>("transitions", agentId)) ?? [];
      return { items: all.slice(Number(after)), next: null, total: all.length };
    },
    async messages(_runId, agentId, { at, before, limit = MESSAGES_AT_A_TIME }) {
      const known = (await contentsOf<readonly FeedMessageItem[]>("messages", agentId)) ?? [];
      const all = known.filter(({ cursor }) => at === undefined || (cursor ?? 0) <= at);
      const end = before === undefined ? all.length : Number(before);
      const start = Math.max(0, end - limit);
      return { items: all.slice(start, end), next: start === 0 ? null : String(start) };
    },
    evals: async () => null,
    evalRuns: async () => missing("evals"),
    prompts: async (_runId, agentId) => (await contentsOf<readonly Prompt[]>("prompts", agentId)) ?? [],
    async prompt(_runId, agentId, seq) {
      const prompts = (await contentsOf<readonly Prompt[]>("prompts", agentId)) ?? [];
      return prompts.find((one) => one.seq === seq) ?? missing("this prompt");
    },
    call: async (_runId, callId) =>
      (await contentsOf<CallDetail>("calls", callId)) ?? missing("the details of this call"),
    async row(_runId, cursor): Promise<RowView> {
      const row = rows.find((one) => one.cursor === cursor) ?? missing("this row");
      return { version: 1, ...row, entries: row.entries as unknown as JsonValue[] };
    },
    requests: async () => head.requests,
    async steps() {
      throw left("what a comparison needs");
    },
    forks: async () => ({ family: [run], isWhole: true, points: [], models: null }),
    async search() {
      throw new FeedFailure("left_out", "An exported file can be filtered, but its contents cannot be searched.");
    },
    storedAccounts: async () => ({ cursor: lastCursor(), accounts, waiters: [] }),
    processes: async () => [],
    schedules: async () => [],
    queues: async () => null,
    async artifact() {
      throw left("artifacts");
    },
  };
}

const contentWords: Readonly<Record<PackedContents, string>> = {
  transitions: "the states of its machines",
  messages: "messages",
  prompts: "prompts",
  calls: "the details of calls",
};

function missing(what: string): never {
  throw left(what);
}

function left(what: string): FeedFailure {
  return new FeedFailure("left_out", `This file was exported without ${what}.`);
}

function infoOf({ head: { run, namesOnly, exportedAt } }: PackedRun): FeedInfo {
  return {
    version: "troupe.feed/1",
    scope: "watch",
    namesOnly,
    source: "file",
    stores: "file",
    tenant: "",
    text: "committed",
    definitions: [],
    acts: "none",
    hasQueues: false,
    now: exportedAt,
    run: run.runId,
  };
}
