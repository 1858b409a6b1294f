/** Version of the Stately inspector protocol. */
export const FRAME_VERSION = "0.7.0";

interface FrameBase {
  /** The id of the agent, turn or call. The same after a restart. */
  readonly sessionId: string;
  /** Id of the team's root agent. */
  readonly rootId: string;
  /** Milliseconds since the epoch; the protocol requires text. */
  readonly createdAt: string;
  /** Unique and increasing within this process. */
  readonly id: string;
  /** Version of the protocol. */
  readonly _version: string;
}

/** The visible state of a machine: its state value, ids and counters, never contents. */
export interface FrameSnapshot {
  /** `active`, or how the machine ended. */
  readonly status: string;
  /** The state of the chart. */
  readonly value?: unknown;
  /** Ids and counters. */
  readonly context?: Readonly<Record<string, unknown>>;
}

export interface FrameEvent {
  /** Type of the event. */
  readonly type: string;
  /** Ids and numbers of the event. */
  readonly [field: string]: unknown;
}

/** A machine has started. */
export interface ActorFrame extends FrameBase {
  /** A machine has started. */
  readonly type: "@xstate.actor";
  /** Name of the machine. */
  readonly name: string;
  /** Session id of the machine that started it; undefined for a root. */
  readonly parentId: string | undefined;
  /** The chart as JSON text. */
  readonly definition: string;
  /** The machine's first state. */
  readonly snapshot: FrameSnapshot;
}

interface EventFrame extends FrameBase {
  /** A machine has received an event. */
  readonly type: "@xstate.event";
  /** The event, without contents. */
  readonly event: FrameEvent;
  /** Session id of the actor whose effect wrote the entry; `undefined` for an entry from outside. */
  readonly sourceId: string | undefined;
  /** The machines are live: an entry may still be refused until its commit has returned. */
  readonly provisional: true;
}

interface SnapshotFrame extends FrameBase {
  /** A machine has changed its state. */
  readonly type: "@xstate.snapshot";
  /** The event that caused the change. */
  readonly event: FrameEvent;
  /** The new state. */
  readonly snapshot: FrameSnapshot;
  /** The machines are live: an entry may still be refused until its commit has returned. */
  readonly provisional: true;
}

/** A message to a client, sent as JSON text. */
export type InspectionFrame = ActorFrame | EventFrame | SnapshotFrame;
