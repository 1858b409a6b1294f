import { afterEach, describe, expect, it } from "vitest";
import { createRuntime, type Runtime, type Stores } from "../../src/index.ts";
import { Feed } from "../../src/inspector/feed/feed.ts";
import type { FeedMessage, FeedRow } from "../../src/inspector/feed/wire.ts";
import { type FeedServer, serveFeed } from "../../src/inspector/start-inspector.ts";
import { type SeededRandom, seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { amount } from "../support/full.ts";
import { loopTurns } from "../support/journal-probes.ts";
import { slowSpeaker } from "../support/slow-speaker.ts";
import { streamingTeam } from "../support/streaming-team.ts";
import { isCaughtUp, storesNames, sharedStoresOf } from "./feed-fixtures.ts";
import { type Connection, connect } from "./http-client.ts";

const tenant = "default";
const TURNS = amount(60, 12);
const CLIENTS = 4;

const ends: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

/** The faults of the live text of one connection: it must begin with a snapshot, and contain every piece once. */
function textFaults({ messages }: Connection): string[] {
  const faults: string[] = [];
  const lengths = new Map<string, number>();
  for (const message of messages) {
    if (message.type !== "live") continue;
    const { event } = message;
    if (event.type !== "text.delta" && event.type !== "text.snapshot") continue;
    const answer = `${event.agentId} ${event.turnId} ${event.step} ${event.attempt}`;
    const known = lengths.get(answer);
    if (event.type === "text.snapshot") lengths.set(answer, event.text.length);
    else if (known === event.offset) lengths.set(answer, event.offset + event.text.length);
    else faults.push(`${answer}: ${event.offset} after ${known}`);
  }
  return faults;
}

function endsLast(message: FeedMessage): boolean {
  return (
    message.type === "rows" &&
    message.rows.some(({ agentId, entries }) =>
      entries.some((entry) => agentId === "desk" && entry.type === "turn.ended" && entry.turnId === `desk#${TURNS}`),
    )
  );
}

function isSecondHalf(message: FeedMessage): boolean {
  return message.type === "live" && JSON.stringify(message).includes("second");
}

interface Cuts {
  readonly rows: readonly FeedRow[];
  readonly cuts: number;
  readonly faults: readonly string[];
  /** Received live events. */
  readonly live: number;
}

/** A page whose connection is cut at random times, also in the middle of a message, until the last turn is over. */
async function pageWithCuts(server: FeedServer, random: SeededRandom): Promise<Cuts> {
  const rows: FeedRow[] = [];
  const faults: string[] = [];
  let live = 0;
  for (let cuts = 0; ; cuts += 1) {
    const connection = await connect(server, {
      run: "desk",
      after: rows.at(-1)?.cursor ?? 0,
      credit: random.between(1, 6),
    });
    const most = random.between(0, 3);
    const wait = random.between(0, 10);
    const enough = connection.until(() => connection.messages.length > most);
    const isLast = await Promise.race([
      connection.until(endsLast).then(() => true),
      enough.then(() => loopTurns(wait)).then(() => false),
    ]);
    connection.socket.terminate();
    await connection.closed;
    await enough.catch(() => undefined);
    rows.push(...connection.rows);
    faults.push(...textFaults(connection));
    live += connection.messages.filter(({ type }) => type === "live").length;
    if (isLast || connection.messages.some(endsLast)) return { rows, cuts, faults, live };
  }
}

async function teamOn(stores: Stores): Promise<{ runtime: Runtime; work: () => Promise<void> }> {
  const runtime = await createRuntime({ agents: [streamingTeam()], stores });
  ends.push(() => runtime.shutdown());
  const agent = await runtime.agent("lead", { agentId: "desk", budget: { maxSteps: 10_000 } });
  await agent.start();
  const work = async (): Promise<void> => {
    for (let turn = 0; turn < TURNS; turn += 1) await agent.executeTurn(`turn ${turn}`).result;
  };
  return { runtime, work };
}

describe.each(storesNames)("real sockets over %s", (name) => {
  const newPlace = sharedStoresOf(name);

  it("that are cut at random under load deliver every row once and every piece of a text", async () => {
    const place = newPlace();
    const stores = place.open();
    const { runtime, work } = await teamOn(stores);
    const elsewhere = place.open();
    if (elsewhere !== stores) ends.push(() => elsewhere.close());
    const feeds = [new Feed(), new Feed()] as const;
    feeds[0].add({ stores, tenant, runtime });
    feeds[1].add(name === "memory" ? { stores, tenant, runtime } : { stores: elsewhere, tenant });
    const servers = await Promise.all(feeds.map((feed) => serveFeed(feed)));
    ends.push(async () => void (await Promise.all(servers.map((server) => server.close()))));
    const seed = Number(process.env["TROUPE_SEED"] ?? 20_261_123);
    const pages = Array.from({ length: CLIENTS }, (_, index) =>
      pageWithCuts(servers[index % 2] as FeedServer, seededRandom(seed + index)),
    );
    const [seen] = await Promise.all([Promise.all(pages), work()]);
    const stored = (await stores.readTree(tenant, "desk", 0, 100_000)).map(({ cursor }) => cursor);
    for (const { rows, cuts, faults } of seen) {
      const cursors = rows.map(({ cursor }) => cursor);
      expect(cursors).toEqual(stored.slice(0, cursors.length));
      expect(stored.length - cursors.length).toBeLessThan(5);
      expect(cuts).toBeGreaterThan(0);
      expect(faults).toEqual([]);
    }
    expect(seen.reduce((sum, { cuts }) => sum + cuts, 0)).toBeGreaterThan(3 * CLIENTS);
    const live = seen.map((one) => one.live);
    expect(live[0]).toBeGreaterThan(0);
    // SQLite transports no text between processes.
    expect(name === "sqlite" ? [live[1], live[3]] : [0, 0]).toEqual([0, 0]);
  });

  it("a client that grants no credit receives nothing and does not delay other clients", async () => {
    const stores = newPlace().open();
    const { runtime, work } = await teamOn(stores);
    const feed = new Feed();
    feed.add({ stores, tenant, runtime });
    const server = await serveFeed(feed);
    ends.push(() => server.close());
    const [idle, single] = [
      await connect(server, { run: "desk", credit: 0, miserly: true }),
      await connect(server, { run: "desk", credit: 1, miserly: true }),
    ];
    const reader = await connect(server, { run: "desk" });
    await Promise.all([reader.until(endsLast), work()]);
    expect(idle.messages).toEqual([]);
    expect(single.messages.filter(({ type }) => type === "rows")).toHaveLength(1);
    const batches = single.messages.findIndex(({ type }) => type === "rows");
    expect(single.messages.slice(batches + 1)).toEqual([]);
    idle.socket.send(JSON.stringify({ type: "credit", batches: 1_000 }));
    await idle.until(endsLast);
    expect(idle.rows.map(({ cursor }) => cursor).slice(0, reader.rows.length)).toEqual(
      reader.rows.map(({ cursor }) => cursor),
    );
    expect(textFaults(idle)).toEqual([]);
  });
});

describe.each(storesNames.filter((name) => name !== "sqlite"))("streamed text, %s", (name) => {
  const newPlace = sharedStoresOf(name);

  it("a client that connects late receives all of it, then the pieces, also from another process", async () => {
    const place = newPlace();
    const stores = place.open();
    const said = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    const whole = Promise.withResolvers<void>();
    const readers: Connection[] = [];

    const runtime = await createRuntime({
      agents: [slowSpeaker({ said: () => said.resolve(), goOn: goOn.promise, whole: whole.promise })],
      stores,
    });
    ends.push(() => runtime.shutdown());
    const asked = Promise.withResolvers<void>();
    ends.push(stores.live.onAsked("the test", () => asked.resolve()));
    const agent = await runtime.agent("speaker", { agentId: "desk" });
    await agent.start();
    const reading = place.open();
    if (reading !== stores) ends.push(() => reading.close());
    const serve = async (): Promise<FeedServer> => {
      const feed = new Feed();
      feed.add(name === "memory" ? { stores, tenant, runtime } : { stores: reading, tenant });
      const server = await serveFeed(feed);
      ends.push(() => server.close());
      return server;
    };
    const [one, other] = [await serve(), await serve()];
    // A model streams its answer only if a client is listening when the call begins.
    const early = await connect(one, { run: "desk" });
    await early.until(isCaughtUp);
    if (reading !== stores) await asked.promise;
    const turn = agent.executeTurn("go").result;
    await said.promise;
    await early.until(({ type }) => type === "live");
    for (const server of [one, other]) {
      const late = await connect(server, { run: "desk" });
      const first = await late.until(({ type }) => type === "live");
      expect(first).toMatchObject({ event: { type: "text.snapshot", text: "The first half, " } });
      expect(late.messages.findIndex(isCaughtUp)).toBeLessThan(late.messages.indexOf(first));
      readers.push(late);
    }
    goOn.resolve();
    for (const reader of [early, ...readers]) {
      await reader.until(isSecondHalf);
      expect(textFaults(reader)).toEqual([]);
    }
    whole.resolve();
    expect((await turn).text).toBe("The first half, and the second.");
  });
});
