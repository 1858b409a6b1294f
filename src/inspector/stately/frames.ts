/** Version of the Stately inspector's frames that these follow. */
export const FRAME_VERSION = "0.7.0";

interface FrameBase {
  /** The id of the agent, turn or call, or `<owner>/<effect>`. The same after a restart. */
  readonly sessionId: string;
  /** The root of the team: the id of its root agent. */
  readonly rootId: string;
  /** Milliseconds since the epoch, as text by the protocol. */
  readonly createdAt: string;
  /** Unique and growing within this process. */
  readonly id: string;
  readonly _version: string;
}

/** The visible part of a machine: its state, ids and counters, never contents. */
export interface FrameSnapshot {
  readonly status: string;
  readonly value?: unknown;
  readonly context?: Readonly<Record<string, unknown>>;
}

export interface FrameEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

export interface ActorFrame extends FrameBase {
  readonly type: "@xstate.actor";
  readonly name: string;
  readonly parentId: string | undefined;
  /** The chart as JSON text. */
  readonly definition: string;
  readonly snapshot: FrameSnapshot;
}

interface EventFrame extends FrameBase {
  readonly type: "@xstate.event";
  readonly event: FrameEvent;
  readonly sourceId: string | undefined;
  /** The machines are live: an entry may still be refused until its commit has returned. */
  readonly provisional: true;
}

interface SnapshotFrame extends FrameBase {
  readonly type: "@xstate.snapshot";
  readonly event: FrameEvent;
  readonly snapshot: FrameSnapshot;
  readonly provisional: true;
}

/** A message to a client, sent as JSON text. */
export type InspectionFrame = ActorFrame | EventFrame | SnapshotFrame;
