import type { Scenario } from "./scenario.ts";

/** One conversation: turns one after the other. */
export interface Conversation {
  /** Carries one input to its end and gives the text of the answer; a streaming agent's text is put together from its pieces. */
  turn(input: string): Promise<string>;
  /** Frees what the conversation holds in this process, where it holds anything. */
  close?(): Promise<void>;
}

/** A contender that is ready to work on one scenario. */
export interface Entrant {
  /** Opening counts: it is part of the measured time. */
  open(): Promise<Conversation> | Conversation;
  close(): Promise<void>;
}

/** A library or loop that takes part: the bare loop, ours on some stores, or another library. */
export interface Contender {
  /** `bare`, the stores' name (`memory`, `sqlite`, `redis`), or the library's. */
  readonly name: string;
  prepare(scenario: Scenario, baseUrl: string): Promise<Entrant>;
}
