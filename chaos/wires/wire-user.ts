import { setTimeout as delay } from "node:timers/promises";
import { taskPrefix } from "../model/script.ts";
import type { SeededRandom } from "../../src/testing/simulation/seeded-random.ts";
import type { ClientPlace, Counts, NodeClient } from "../serving/killed-nodes.ts";
import { userOf } from "../serving/team.ts";
import { Line } from "./wire-client.ts";
import { type Exchange, type Heard, Hearing, type Talk, type Wire } from "./wire.ts";

/** Longest time for an exchange. Two kills with their pauses take minutes on a busy machine. */
const LOST_MS = 600_000;
/** Pause between two exchanges. */
const LONGEST_PAUSE_MS = 1_500;
/**
 * Shares of exchanges that end their conversation, are sent from two windows at once, and are repeated after the turn's
 * end.
 */
const NEW_TALK = 0.4;
const TWICE = 0.25;
const AFTERWARDS = 0.25;

/** An exchange from the client's view. */
export interface ExchangeRecord {
  readonly exchange: Exchange;
  readonly conversation: string;
  /** The exchange's data in each window. */
  readonly hearings: readonly Hearing[];
}

export interface WireUserOptions {
  readonly wire: Wire;
  readonly place: ClientPlace;
  readonly random: SeededRandom;
  readonly counts: WireCounts;
}

export interface WireCounts extends Counts {
  /** Number of requests sent from two windows at once, and number repeated after the end. */
  twice: number;
  afterwards: number;
  answers: number;
  cancels: number;
}

/** A user with conversations over one wire. Each request goes to another node, and cut requests are sent again. */
export class WireUser implements NodeClient {
  readonly userId: string;
  readonly exchanges: ExchangeRecord[] = [];
  readonly faults: string[] = [];
  readonly #options: WireUserOptions;
  #talks = 0;

  constructor(options: WireUserOptions) {
    this.#options = options;
    this.userId = userOf(options.place.number);
  }

  get asked(): number {
    return this.exchanges.length;
  }

  async run(isOver: () => boolean): Promise<void> {
    const { random } = this.#options;
    await delay(random.between(0, LONGEST_PAUSE_MS));
    let talk: Window | undefined;
    do {
      try {
        if (talk === undefined || talk.talk.isSingle === true || random.next() < NEW_TALK) talk = await this.#open();
        await this.#inTime(this.#exchange(talk));
      } catch (error) {
        const last = this.exchanges.at(-1);
        if (last && talk && (await this.#isGivenUp(last, talk))) continue;
        this.faults.push(`${this.userId} ${last?.exchange.text}: ${errorText(error)}`);
        return;
      }
      await delay(random.between(0, LONGEST_PAUSE_MS));
    } while (!isOver());
  }

  async #open(): Promise<Window> {
    const { wire } = this.#options;
    this.#talks += 1;
    const conversation = `${this.userId}-${this.#talks}`;
    const line = this.#line();
    return { line, conversation, talk: await line.insist(() => wire.open(line, conversation)) };
  }

  #line(): Line {
    return new Line(this.#options.place, this.#options.counts);
  }

  async #inTime(work: Promise<void>): Promise<void> {
    const cancel = new AbortController();
    const lost = delay(LOST_MS, "lost", { signal: cancel.signal }).catch(() => undefined);
    const first = await Promise.race([work, lost]).finally(() => cancel.abort());
    if (first === "lost") throw new Error(`it did not receive its end within ${LOST_MS / 1_000} s`);
  }

  async #exchange(window: Window): Promise<void> {
    const { random, counts } = this.#options;
    const exchange = this.#next(window);
    const [both, late] = [TWICE, AFTERWARDS].map((share) => window.talk.isUnkeyed !== true && random.next() < share);
    const windows = both ? [window, await this.#twin(window)] : [window];
    const after = late ? await this.#twin(window) : undefined;
    const hearings = windows.map(() => new Hearing());
    this.exchanges.push({ exchange, conversation: window.conversation, hearings });
    if (both) counts.twice += 1;
    const canceling = exchange.deed === "drone" ? this.#cancel(await this.#twin(window), exchange, hearings[0]) : null;
    await Promise.all([this.#toEnd(exchange, windows, hearings), canceling]);
    if (after === undefined) return;
    counts.afterwards += 1;
    const hearing = new Hearing();
    hearings.push(hearing);
    await this.#toEnd(exchange, [after], [hearing]);
  }

  /** All windows send the same requests and answers at once. */
  async #toEnd(exchange: Exchange, windows: readonly Window[], hearings: readonly Hearing[]): Promise<void> {
    const inAll = (attempt: (talk: Talk, hearing: Hearing) => Promise<Heard>): Promise<Heard[]> =>
      Promise.all(
        windows.map(async ({ line, talk }, index) => {
          const hearing = hearings[index] ?? new Hearing();
          const heard = await line.insist(
            () => attempt(talk, hearing),
            () => hearing.cut(),
          );
          return hearing.end(heard);
        }),
      );
    let [heard] = await inAll((talk, hearing) => talk.send(exchange, hearing));
    const answered = new Set<string>();
    while (heard?.state === "waiting") {
      const { asked } = heard;
      const again = asked.find(({ id }) => answered.has(id));
      if (asked.length === 0 || again) throw new Error(`it waits for ${again ? `${again.id} once more` : "nothing"}`);
      for (const { id } of asked) answered.add(id);
      this.#options.counts.answers += 1;
      [heard] = await inAll((talk, hearing) => talk.answer(exchange, asked, hearing));
    }
  }

  /** Whether its turn has failed meanwhile, such as after two deaths. A refusal is then correct. */
  async #isGivenUp({ exchange, hearings }: ExchangeRecord, window: Window): Promise<boolean> {
    if (window.talk.isUnkeyed === true) return false;
    const { line, talk } = await this.#twin(window);
    const heard = await line.insist(() => talk.send(exchange, new Hearing())).catch(() => undefined);
    if (heard?.state === "failed") for (const hearing of hearings) hearing.end(heard);
    return heard?.state === "failed";
  }

  #next({ talk, conversation }: Window): Exchange {
    const deed = this.#options.random.pick(talk.deeds);
    const key = `${conversation}-${this.exchanges.length + 1}`;
    return { key, deed, text: `${taskPrefix}${key}-to-${deed}`, answer: `the answer to ${key}` };
  }

  async #twin({ talk, conversation }: Window): Promise<Window> {
    const line = this.#line();
    return { line, conversation, talk: await line.insist(() => talk.twin(line)) };
  }

  async #cancel({ line, talk }: Window, exchange: Exchange, hearing: Hearing | undefined): Promise<undefined> {
    await hearing?.began;
    this.#options.counts.cancels += 1;
    await line.insist(() => talk.cancel(exchange));
  }
}

interface Window {
  readonly line: Line;
  readonly conversation: string;
  readonly talk: Talk;
}

function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
