import { setImmediate as loopTurn } from "node:timers/promises";
import type { AgentRequest } from "../../src/index.ts";
import type { Entry, EntryType } from "../../src/state/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import type { EffectKind } from "./effect-kinds.ts";

/** Turns of the event loop for which a write is on its way to the stores, and its answer on the way back. */
const WAY = 3;

/** Commands, and reports of workers and timers, which are intents too: they are stored before anything comes of them. */
const watchedCommands = [
  "openTurn",
  "abort",
  "decide",
  "claimCall",
  "postCallEnd",
  "fireTimer",
] as const satisfies readonly (keyof Stores)[];
type Command = (typeof watchedCommands)[number];
type Given<Name extends Command> = Parameters<Stores[Name]>;

type Fits = (entry: Entry, agentId: string) => boolean;

/**
 * Stores whose writes take their time, and what they have committed: they show what starts before its intent is committed.
 * Owns: the committed entries and commands, and the faults that were found.
 */
export class CommitWatch {
  readonly #committed: { readonly agentId: string; readonly entry: Entry }[] = [];
  readonly #rows = new Set<number>();
  readonly #messages = new Set<string>();
  readonly #requests = new Map<string, AgentRequest["kind"]>();
  readonly #commands: { readonly name: Command; readonly given: readonly unknown[] }[] = [];
  readonly #seen = new Set<EffectKind>();
  readonly #models = new Map<string, number>();
  readonly faults: string[] = [];

  /** The same stores, watched. */
  readonly through = (stores: Stores): Stores => {
    const commit: Stores["commit"] = async (batches, ...rest) => {
      const outcomes = await underWay(() => stores.commit(batches, ...rest));
      for (const [index, { key, requests, messages }] of batches.entries()) {
        const outcome = outcomes[index];
        if (outcome?.type !== "committed") continue;
        this.#rows.add(outcome.cursor);
        for (const entry of outcome.entries) this.#committed.push({ agentId: key.agentId, entry });
        for (const { requestId, kind } of requests) this.#requests.set(requestId, kind);
        for (const { id } of messages) this.#messages.add(id);
      }
      await onTheWay();
      return outcomes;
    };
    const command =
      (name: Command) =>
      async (...given: unknown[]): Promise<unknown> => {
        const send = stores[name] as (...given: unknown[]) => Promise<unknown>;
        const outcome = await underWay(() => send.apply(stores, given));
        this.#commands.push({ name, given });
        await onTheWay();
        return outcome;
      };
    const commands = new Map<PropertyKey, unknown>(watchedCommands.map((name) => [name, command(name)]));
    return new Proxy(stores, {
      get: (target, name: keyof Stores) => {
        if (name === "commit") return commit;
        const member: unknown = commands.get(name) ?? target[name];
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
  };

  /** The kinds of effects that have started, sorted. */
  get kinds(): EffectKind[] {
    return [...this.#seen].toSorted();
  }

  /** An effect starts whose intent is such an entry. */
  starts(kind: EffectKind, type: EntryType, fits: Fits = () => true): void {
    this.#note(kind, this.#count(type, fits) > 0, type);
  }

  /** The next model call of some agents starts: so many of their intents must be committed by now. `of` names them. */
  callsModel(of: string, isOwn: (agentId: string) => boolean): void {
    const before = this.#models.get(of) ?? 0;
    this.#models.set(of, before + 1);
    const intents = (["model.requested", "generate.requested"] as const).map((type) =>
      this.#count(type, (_entry, agentId) => isOwn(agentId)),
    );
    this.#note("model", intents.reduce((sum, count) => sum + count, 0) > before, `of ${of}`);
  }

  /** An effect starts that follows from a stored command. */
  startsAfter<Name extends Command>(kind: EffectKind, name: Name, fits: (...given: Given<Name>) => boolean): void {
    const isStored = this.#commands.some((one) => one.name === name && fits(...(one.given as unknown as Given<Name>)));
    this.#note(kind, isStored, name);
  }

  /** A request is shown to people. */
  shows(requestId: string): void {
    this.#note("request", this.#requests.has(requestId), requestId);
  }

  /** An event with this row is shown. */
  showsRow(row: number): void {
    this.#note("event", this.#rows.has(row), `row ${row}`);
  }

  /** A message is copied to a store of the user's. */
  copies(messageId: string): void {
    this.#note("copy", this.#messages.has(messageId), messageId);
  }

  #count(type: EntryType, fits: Fits): number {
    return this.#committed.filter(({ agentId, entry }) => entry.type === type && fits(entry, agentId)).length;
  }

  #note(kind: EffectKind, isCommitted: boolean, what: string): void {
    this.#seen.add(kind);
    if (!isCommitted) this.faults.push(`${kind}: it has started before its intent was committed (${what})`);
  }
}

async function underWay<T>(send: () => Promise<T>): Promise<T> {
  await onTheWay();
  return await send();
}

async function onTheWay(): Promise<void> {
  for (let turn = 0; turn < WAY; turn += 1) await loopTurn();
}
