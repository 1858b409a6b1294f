import { setImmediate as loopTurn } from "node:timers/promises";
import type { AgentRequest } from "../../src/index.ts";
import type { Entry, EntryType } from "../../src/state/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import type { EffectKind } from "./effect-kinds.ts";

/** Turns of the event loop that a write takes to the stores, and its answer back. */
const WAY = 3;

/** Commands, and reports of workers and timers, are intents too: they are stored before they have an effect. */
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
 * Stores with slow writes, and a record of their commits: they detect effects that start before their intent is committed.
 * Owns: the committed entries and commands, and the detected faults.
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

  /** Records an effect whose intent is an entry of this type. */
  starts(kind: EffectKind, type: EntryType, fits: Fits = () => true): void {
    this.#note(kind, this.#count(type, fits) > 0, type);
  }

  /** Records the next model call of some agents, for which as many intents must be committed. `of` names the agents. */
  callsModel(of: string, isOwn: (agentId: string) => boolean): void {
    const before = this.#models.get(of) ?? 0;
    this.#models.set(of, before + 1);
    const intents = (["model.requested", "generate.requested"] as const).map((type) =>
      this.#count(type, (_entry, agentId) => isOwn(agentId)),
    );
    this.#note("model", intents.reduce((sum, count) => sum + count, 0) > before, `of ${of}`);
  }

  /** Records an effect of a stored command. */
  startsAfter<Name extends Command>(kind: EffectKind, name: Name, fits: (...given: Given<Name>) => boolean): void {
    const isStored = this.#commands.some((one) => one.name === name && fits(...(one.given as unknown as Given<Name>)));
    this.#note(kind, isStored, name);
  }

  /** Records that a request is shown to people. */
  shows(requestId: string): void {
    this.#note("request", this.#requests.has(requestId), requestId);
  }

  /** Records that an event of this row is delivered. */
  showsRow(row: number): void {
    this.#note("event", this.#rows.has(row), `row ${row}`);
  }

  /** Records that a message is copied to a custom store. */
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
