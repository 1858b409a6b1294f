import type { ActorFrame, InspectionFrame } from "./frames.ts";
import type { FramedActor } from "./hub.ts";

/** Most actors that are ever sent to one client, because Stately's page keeps every actor it receives. */
export const MOST_ACTORS = 200;

export interface TreeFramesOptions {
  /** The root agent of the tree. Default: the newest root at the beginning, else the root of the first frame. */
  readonly rootId?: string | undefined;
  readonly send: (frame: InspectionFrame) => void;
}

/**
 * The frames of one tree for one client.
 * Owns: the set of actors sent to the client. Does not own: the socket, the source of the frames.
 *
 * 1. Actors beyond `MOST_ACTORS` are not sent, nor are frames about them.
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

  /**
   * Sends the current actors of the tree. If there are too many, live actors take precedence, then the newest ended ones.
   */
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

  /** Whether the actor was sent to the client. */
  readonly has = (sessionId: string): boolean => this.#sent.has(sessionId);

  /** Whether frames about the actor are sent to the client. */
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

/** The actors to send. An actor is kept only together with all its ancestors. */
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
