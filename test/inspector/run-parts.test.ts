import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test, vi } from "vitest";
import { repositoryRoot } from "../../scripts/run-command.ts";
import { EventPlaces, filteredEvents } from "../../src/inspector/run-model/event-rows.ts";
import { type RunEntry, RunLog, type RunRow } from "../../src/inspector/run-model/run-log.ts";
import { RunMoments } from "../../src/inspector/run-model/run-moments.ts";
import { Timeline } from "../../src/inspector/run-model/timeline.ts";

const record = {
  agentId: "desk",
  name: "lead",
  definition: "hash",
  parentAgentId: null,
  parentTurnId: null,
  parentStep: null,
  parentCallId: null,
  isBackground: false,
  depth: 0,
  accountId: null,
  parentAccountId: null,
  sessionId: null,
  createdAt: 0,
};

/** The given number of rows with two entries: a tool that starts and ends. */
function rowsOf(count: number): RunRow[] {
  return Array.from({ length: count }, (_, index) => {
    const at = 1_000 + index * 10;
    const call = { callId: `desk:1:${index}:0`, name: index % 2 === 0 ? "look" : "read", turnId: "desk:1" };
    const started = { type: "tool.started", seq: index * 2 + 1, at, attempt: 1, accountId: "turn:desk:1", ...call };
    const settled = {
      type: "tool.settled",
      seq: index * 2 + 2,
      at: at + 5,
      outcome: "success",
      durationMs: 5,
      ...call,
    };
    return { cursor: index + 1, agentId: "desk", entries: [started, settled] as unknown as RunEntry[] };
  });
}

test("an arriving entry is folded once, whichever view is open meanwhile", () => {
  const log = new RunLog();
  log.addAgents([record]);
  const moments = new RunMoments(log);
  const rows = rowsOf(5_000);
  for (let from = 0; from < rows.length; from += 10) {
    log.append(rows.slice(from, from + 10));
    moments.at(log.length);
    moments.learn([{ id: "turn:desk:9", agentId: "desk", turnId: "desk:9", parentId: null, limits: {}, openedAt: 0 }]);
  }
  expect(moments.folded).toBe(10_000);
  const earlier = moments.at(3_000).agents;
  expect(earlier).toEqual(new RunMoments(log).at(3_000).agents);
  const before = moments.folded;
  log.append(rowsOf(5_010));
  moments.at(log.length);
  expect(moments.folded - before).toBe(20);
});

test("the filter and the busy time continue from their last entry", () => {
  const log = new RunLog();
  log.addAgents([record]);
  const filter = { text: "read", agents: null, groups: new Set<never>() };
  const places = new EventPlaces(log, filter);
  const timeline = new Timeline(log);
  for (const row of rowsOf(1_500)) {
    log.append([row]);
    places.update();
    timeline.update();
  }
  expect(places.update()).toEqual(filteredEvents(log, filter));
  expect(timeline.busy).toHaveLength(1_500);
});

test("the entries before an index can be dropped; the others keep their indexes and states", () => {
  const log = new RunLog();
  log.addAgents([record]);
  log.append(rowsOf(3_000));
  const moments = new RunMoments(log);
  const timeline = new Timeline(log);
  timeline.update();
  const whole = structuredClone(moments.at(5_001).agents);
  const start = moments.stateAt(4_000);
  moments.drop(4_000);
  timeline.drop(4_000);
  log.drop(4_000);
  expect([log.first, log.length, log.cursorBefore, log.startedAt]).toEqual([4_000, 6_000, 2_000, 1_000]);
  expect(log.entry(3_999)).toBeUndefined();
  expect(log.entry(4_000)).toMatchObject({ seq: 4_001 });
  expect(log.countUpTo(2_001)).toBe(4_002);
  expect(moments.at(5_001).agents).toEqual(whole);
  expect(moments.at(0)).toMatchObject({ count: 4_000, cursor: 2_000 });
  expect([...timeline.all()]).toHaveLength(1_000);
  const later = new RunLog({ count: 4_000, cursor: 2_000, startedAt: 1_000 });
  later.addAgents(log.agents);
  later.append(rowsOf(3_000));
  expect(new RunMoments(later, start).at(5_001).agents).toEqual(whole);
});

interface Session {
  readonly log: RunLog;
  readonly moments: RunMoments;
  readonly timeline: Timeline;
  readonly first: { readonly value: number };
  readonly length: { readonly value: number };
  readonly isPast: { readonly value: boolean };
  readonly isCaughtUp: { readonly value: boolean };
  readonly requests: { readonly value: readonly object[] };
  readonly seen: number;
  readonly placeOfEarlier: number;
  readonly placeOfLater: number;
  pin(count: number): void;
  placeOutside(address: string): number | null;
  windowAt(place: number | "newest"): Session;
  end(): void;
}
type SessionClass = new (client: object, runId: string, options: object) => Session;

/** Its types need a browser's. */
async function sessionOf(client: object, size: object): Promise<Session> {
  const path = join(repositoryRoot, "src", "inspector", "ui", "run-session.ts");
  const { RunSession } = (await import(pathToFileURL(path).href)) as { RunSession: SessionClass };
  return new RunSession(client, "desk", { aheadMs: null, size });
}

/** Sends all rows after a cursor, in parts, as fast as they are accepted. */
function clientOf(rows: readonly RunRow[]) {
  return {
    requests: async () => [],
    storedAccounts: async () => ({ cursor: 0, accounts: [], waiters: [] }),
    watch(_run: string, after: number, listener: { message(message: object): Promise<void> | undefined }) {
      let isEnded = false;
      const send = async (): Promise<void> => {
        await Promise.resolve();
        void listener.message({ type: "agents", agents: [record] });
        const rest = rows.filter(({ cursor }) => cursor > after);
        for (let from = 0; from < rest.length && !isEnded; from += 500) {
          const isCaughtUp = from + 500 >= rest.length;
          await listener.message({ type: "rows", rows: rest.slice(from, from + 500), isCaughtUp });
        }
      };
      void send();
      return { end: () => (isEnded = true) };
    },
  };
}

test("of a run that is too large the newest entries are loaded, and every other part can be shown", async () => {
  const client = clientOf(rowsOf(50_000));
  let session = await sessionOf(client, { most: 25_000, droppedAtOnce: 5_000 });
  onTestFinished(() => session.end());
  const read = (): Promise<void> => readWhole(session);
  await read();
  expect([session.first.value, session.length.value, session.isPast.value]).toEqual([75_000, 100_000, false]);
  expect(session.log.entries).toHaveLength(25_000);
  const shown = [];
  while (session.first.value > 0) {
    session = session.windowAt(session.placeOfEarlier);
    await read();
    shown.push(`${session.first.value}-${session.length.value}`);
    expect([session.isPast.value, session.seen]).toEqual([true, 100_000]);
  }
  expect(shown).toEqual(["55000-80000", "35000-60000", "15000-40000", "0-25000"]);
  session = session.windowAt("newest");
  await read();
  expect([session.first.value, session.length.value]).toEqual([75_000, 100_000]);
  const place = session.placeOutside("20001") ?? 0;
  session = session.windowAt(place);
  await read();
  expect(session.log.first).toBeLessThan(40_001);
  expect(session.log.countUpTo(20_001)).toBe(40_002);
});

function entryAt(seq: number, at: number, given: object): RunEntry {
  return { seq, at, turnId: "desk:1", ...given } as RunEntry;
}

async function readWhole({ isCaughtUp }: Session): Promise<void> {
  await vi.waitFor(() => expect(isCaughtUp.value).toBe(true), { timeout: 20_000 });
}

/** A tool that runs from the second row to the last but one, with short ones and a wait for two subagents, one of which ends. */
function rowsWithLongCall(count: number): RunRow[] {
  const rows = rowsOf(count);
  const long = { callId: "desk:1:0:1", name: "crawl", attempt: 1 };
  const spawned = { type: "child.spawned", background: false, definition: { name: "reader", hash: "hash" } };
  const place = (index: number, ...entries: RunEntry[]): void => {
    const row = rows[index];
    if (row) rows[index] = { ...row, entries: [...row.entries, ...entries] };
  };
  place(
    1,
    entryAt(4, 1_015, { type: "tool.started", ...long }),
    entryAt(4, 1_015, { ...spawned, childId: "one" }),
    entryAt(4, 1_015, { ...spawned, childId: "other" }),
  );
  place(count / 2, entryAt(6, 1_000 + count * 5, { type: "child.ended", childId: "one" }));
  const last = 1_000 + count * 10;
  place(count - 2, entryAt(8, last, { type: "tool.settled", outcome: "success", durationMs: 1, ...long }));
  place(count - 2, entryAt(8, last, { type: "child.ended", childId: "other" }));
  return rows;
}

test("spans that are open at the start of a loaded part are drawn in it", async () => {
  const rows = rowsWithLongCall(50_000);
  const log = new RunLog();
  log.addAgents([record]);
  log.append(rows);
  const whole = new Timeline(log);
  whole.update();
  const long = whole.spansOf(0).filter(({ end, start }) => end - start > 1_000);
  expect(long.map(({ kind }) => kind)).toEqual(["tool", "child"]);
  let session = await sessionOf(clientOf(rows), { most: 25_000, droppedAtOnce: 5_000 });
  onTestFinished(() => session.end());
  await readWhole(session);
  while (session.first.value > 0) {
    session = session.windowAt(session.placeOfEarlier);
    await readWhole(session);
    session.timeline.update();
    const found = session.timeline.spansOf(0).filter(({ label }) => label === "crawl" || label.startsWith("waits"));
    const isEnd = session.length.value === log.length;
    expect(found).toEqual(long.map((span) => (isEnd ? span : { ...span, end: Number.POSITIVE_INFINITY, last: -1 })));
    // From the second row on some tool always works.
    const { start } = session.timeline.busy.at(-1) ?? {};
    expect(start).toBe(session.first.value === 0 ? 1_010 : log.timeOf(session.first.value));
  }
});

test("a thousand turns that end while the page is open do not cause a thousand reads of the requests", async () => {
  const listening = Promise.withResolvers<{ message(message: object): unknown }>();
  let asked = 0;
  const session = await sessionOf(
    {
      requests: async () => Array.from({ length: (asked += 1) }, () => ({})),
      watch(_run: string, _after: number, listener: { message(message: object): unknown }) {
        listening.resolve(listener);
        return { end: () => undefined };
      },
    },
    { most: 25_000, droppedAtOnce: 5_000 },
  );
  onTestFinished(() => session.end());
  const listener = await listening.promise;
  listener.message({ type: "agents", agents: [record] });
  listener.message({ type: "rows", rows: rowsOf(1), isCaughtUp: true });
  await vi.waitFor(() => expect(session.requests.value).toHaveLength(1), { timeout: 20_000 });
  const begun = performance.now();
  for (let cursor = 2; cursor < 1_002; cursor += 1) {
    const entries = [{ type: "turn.ended", seq: cursor + 1, at: 2_000, turnId: "desk:1", outcome: "completed" }];
    listener.message({ type: "rows", rows: [{ cursor, agentId: "desk", entries }], isCaughtUp: true });
  }
  // A read that began before all turns had ended does not count.
  await vi.waitFor(() => expect(session.length.value).toBe(1_002), { timeout: 20_000 });
  await vi.waitFor(() => expect(session.requests.value.length).toBeGreaterThan(1), { timeout: 20_000 });
  // One immediately, one after the last turn, and four per second of elapsed time.
  expect(asked).toBeLessThanOrEqual(3 + Math.ceil((performance.now() - begun) / 250));
});
