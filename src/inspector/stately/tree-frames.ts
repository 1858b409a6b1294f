import type { ActorFrame, InspectionFrame } from "./frames.ts";
import type { FramedActor } from "./hub.ts";

/** Most actors that a client gets in all, because Stately's page keeps each actor that it gets. */
export const MOST_ACTORS = 200;

export interface TreeFramesOptions {
  /** The root agent of the tree. Default: the newest at the beginning, or else the first that comes. */
  readonly rootId?: string | undefined;
  readonly send: (frame: InspectionFrame) => void;
}

/**
 * The frames of one tree for one client.
 * Owns: which actors the client has. Does not own: the socket, the source of the frames.
 *
 * 1. An actor beyond `MOST_ACTORS` is not sent, nor is any frame about it.
 * 2. A stored actor never replaces a live one.
 */
export class TreeFrames {
  readonly #send: (frame: InspectionFrame) => void;
  readonly #sent = new Set<string>();
  #rootId: string | undefined;

  constructor({ rootId, send }: TreeFramesOptions) {
    this.#rootId = rootId;
    this.#send = send;
  }

  get rootId(): string | undefined {
    return this.#rootId;
  }

  /** Sends the present actors of the tree: those that live before those that ended, the newest of them first. */
  begin(frames: readonly ActorFrame[]): void {
    const roots = frames.filter(({ sessionId, rootId }) => sessionId === rootId);
    this.#rootId ??= (roots.at(-1) ?? frames.at(-1))?.rootId;
    const own = frames.filter(({ rootId }) => rootId === this.#rootId);
    const kept = keptOf(own);
    for (const frame of own) if (kept.has(frame.sessionId)) this.take(frame);
  }

  /** Sends the stored actors of the tree that are not live. */
  addStored(frames: readonly ActorFrame[]): void {
    for (const frame of frames) {
      this.#rootId ??= frame.rootId;
      if (!this.#sent.has(frame.sessionId) && this.#hasRoom(frame)) this.take(frame);
    }
  }

  /** Whether the client has an actor. */
  readonly has = (sessionId: string): boolean => this.#sent.has(sessionId);

  /** Whether the client gets frames about an actor. */
  readonly wants = (actor: FramedActor): boolean => this.#sent.has(actor.sessionId) || this.#hasRoom(actor);

  readonly take = (frame: InspectionFrame): void => {
    if (frame.type === "@xstate.actor") {
      this.#rootId ??= frame.rootId;
      this.#sent.add(frame.sessionId);
    }
    this.#send(frame);
  };

  #hasRoom({ rootId }: FramedActor): boolean {
    return this.#sent.size < MOST_ACTORS && (this.#rootId === undefined || this.#rootId === rootId);
  }
}

function isLive({ snapshot }: ActorFrame): boolean {
  return snapshot.status === "active";
}

/** An actor is kept with all its parents, or not at all. */
function keptOf(frames: readonly ActorFrame[]): ReadonlySet<string> {
  const byId = new Map(frames.map((frame) => [frame.sessionId, frame]));
  const kept = new Set<string>();
  for (const frame of [...frames.filter(isLive), ...frames.filter((one) => !isLive(one)).toReversed()]) {
    const line: string[] = [];
    for (let one: ActorFrame | undefined = frame; one && !kept.has(one.sessionId); one = byId.get(one.parentId ?? "")) {
      line.push(one.sessionId);
    }
    if (kept.size + line.length <= MOST_ACTORS) for (const sessionId of line) kept.add(sessionId);
  }
  return kept;
}
