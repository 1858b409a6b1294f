import type { Scenario } from "./scenario.ts";

/** One conversation, whose turns run sequentially. */
export interface Conversation {
  /** Runs one turn and returns the text of the answer. The text of a streaming agent is joined from its pieces. */
  turn(input: string): Promise<string>;
  /** Frees resources of the conversation in this process, if it has any. */
  close?(): Promise<void>;
}

/** A contender that is ready to work on one scenario. */
export interface Entrant {
  /** Opens a conversation. This is part of the measured time. */
  open(): Promise<Conversation> | Conversation;
  close(): Promise<void>;
}

/** A participant: the bare loop, troupe on some stores, or another library. */
export interface Contender {
  /** `bare`, the stores' name (`memory`, `sqlite`, `redis`), or the library's. */
  readonly name: string;
  prepare(scenario: Scenario, baseUrl: string): Promise<Entrant>;
}
