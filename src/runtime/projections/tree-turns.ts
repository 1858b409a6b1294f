import { type AgentKey, agentOfTurn, type Entry, type JournalRow } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { type Auth, concealCredentials } from "../../tools/index.ts";
import type { TurnAuth } from "../agent/turn-auth.ts";
import type { ProjectionContext } from "../api/projection-stores.ts";

const outsideTurns: ProjectionContext = Object.freeze({ actorId: null, auth: undefined });

interface ProjectedTurn {
  /** `undefined` until it has been read. */
  actorId?: string | null;
  /** The credentials at its end in this process. */
  given?: Auth | undefined;
  asked?: Promise<Auth | undefined> | undefined;
  /** The credentials passed to a store last. */
  shown?: Auth | undefined;
  isOver: boolean;
}

export interface TreeTurnsOptions {
  readonly stores: Pick<Stores, "lookAtTurn" | "readJournal">;
  readonly tenant: string;
  readonly auth: Pick<TurnAuth, "of" | "ask" | "redactorFor">;
}

/**
 * The turns of one tree whose writes to the user's stores are not complete.
 * Owns: their actors, and their credentials once they have ended. Does not own: credentials of open turns (`TurnAuth`).
 *
 * Invariants
 * 1. A write receives the credentials of its own turn.
 * 2. Credentials are in memory only, and dropped when every projection has passed the end of their turn.
 * 3. `resolveAuth` is called at most once per turn for all projections, and again after a failed write.
 */
export class TreeTurns {
  readonly #options: TreeTurnsOptions;
  readonly #turns = new Map<string, ProjectedTurn>();

  constructor(options: TreeTurnsOptions) {
    this.#options = options;
  }

  get isEmpty(): boolean {
    return this.#turns.size === 0;
  }

  /** Records the actors of turns that start in these rows. */
  note(rows: readonly JournalRow[]): void {
    for (const entry of rows.flatMap((row): readonly Entry[] => row.entries)) {
      if (entry.type === "turn.started") this.#turn(entry.turnId).actorId = entry.actorId;
    }
  }

  /** Marks the turns that end in these rows, which one projection has written. */
  passed(rows: readonly JournalRow[]): void {
    for (const entry of rows.flatMap((row): readonly Entry[] => row.entries)) {
      const turn = entry.type === "turn.ended" ? this.#turns.get(entry.turnId) : undefined;
      if (turn) turn.isOver = true;
    }
  }

  /** Keeps the credentials of a turn that has ended in this process, before `TurnAuth` drops them. */
  ended(turnId: string): void {
    const auth = this.#options.auth.of(turnId);
    if (auth?.credentials === undefined) return;
    const turn = this.#turn(turnId);
    turn.given = auth;
    turn.isOver = true;
  }

  /** Drops the turns that are over. Call it when every projection is up to date. */
  forgetOver(): void {
    for (const [turnId, { isOver }] of this.#turns) if (isOver) this.#turns.delete(turnId);
  }

  forgetAll(): void {
    this.#turns.clear();
  }

  /** After a failed write, resolves credentials again: those that `resolveAuth` returned may have been the reason. */
  askAgain(): void {
    for (const turn of this.#turns.values()) turn.asked = undefined;
  }

  /** Redacts the credentials that stores received in a text. */
  redact(text: string): string {
    let redacted = text;
    for (const { shown } of this.#turns.values()) {
      if (shown) redacted = this.#options.auth.redactorFor(shown)(redacted);
    }
    return redacted;
  }

  /** The context passed to a store with a write of this turn; `null` if the write belongs to no turn. */
  async contextOf(turnId: string | null): Promise<ProjectionContext> {
    if (turnId === null) return outsideTurns;
    const turn = this.#turn(turnId);
    if (turn.actorId === undefined) turn.actorId = await this.#readActor(turnId, turn);
    const { actorId } = turn;
    if (actorId === null) return outsideTurns;
    const known = [turn.given, this.#options.auth.of(turnId)].find(
      (auth) => auth?.credentials !== undefined && auth.actorId === actorId,
    );
    if (!known) turn.asked ??= this.#ask(turnId, actorId);
    turn.shown = known ?? (await turn.asked);
    return Object.freeze({ actorId, auth: turn.shown });
  }

  async #ask(turnId: string, actorId: string): Promise<Auth | undefined> {
    const agentId = agentOfTurn(turnId);
    const auth = await this.#options.auth.ask({ actorId, agentId, turnId, reason: "projection" });
    return auth?.credentials === undefined ? undefined : concealCredentials(auth);
  }

  /** For a turn whose start was copied earlier. */
  async #readActor(turnId: string, turn: ProjectedTurn): Promise<string | null> {
    const { stores, tenant } = this.#options;
    const key: AgentKey = { tenant, agentId: agentOfTurn(turnId) };
    const look = await stores.lookAtTurn(key, turnId);
    if (look?.past) turn.isOver = true;
    const rows = look?.past ? [look.past] : await stores.readJournal(key, (look?.record.checkpoint?.seq ?? 0) + 1);
    const started = rows
      .flatMap(({ entries }) => entries)
      .find((entry) => entry.type === "turn.started" && entry.turnId === turnId);
    return started?.type === "turn.started" ? started.actorId : null;
  }

  #turn(turnId: string): ProjectedTurn {
    const known = this.#turns.get(turnId) ?? { isOver: false };
    this.#turns.set(turnId, known);
    return known;
  }
}
