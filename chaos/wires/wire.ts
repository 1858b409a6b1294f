import type { SurfaceName } from "../serving/node.ts";
import type { Line } from "./wire-client.ts";

/**
 * The kinds of turns of the teller in chaos/serving/team.ts: only an answer; calls of tools and a subagent; a tool that
 * needs approval; a client tool from its definition or from the turn; a question; an answer so long that it is canceled.
 */
export type Deed = "talk" | "work" | "pay" | "sign" | "stamp" | "ask" | "drone";

/** A turn as requested by the client, each time with the same text and key. */
export interface Exchange {
  readonly key: string;
  readonly deed: Deed;
  /** The user's text, which is unique among users. */
  readonly text: string;
  /** The client's answer to a request. */
  readonly answer: string;
}

/** An open request of a turn. */
export interface Asked {
  /** Its id in the wire's protocol. */
  readonly id: string;
  readonly kind: "approval" | "question" | "client";
  /** The value that the wire requires with an approval. */
  readonly proof?: string | undefined;
}

/** The state of a resting turn, as received by the client. */
export interface Heard {
  readonly state: "completed" | "waiting" | "canceled" | "failed";
  /** The answer shown by the client. */
  readonly text: string;
  readonly asked: readonly Asked[];
  /** The shown conversation, `spokenOf` its messages, if the client keeps one. */
  readonly shown?: readonly string[] | undefined;
}

/**
 * The texts of the agent and its tools, in order. Consecutive results are sorted, because they are shown in the order of
 * arrival but stored in the order of their calls.
 */
export function spokenOf(messages: readonly { readonly role: string; readonly text: string }[]): string[] {
  const spoken: string[] = [];
  let results: string[] = [];
  for (const { role, text } of messages) {
    if (role === "tool") results.push(text);
    if (role === "tool" || text === "") continue;
    spoken.push(...results.toSorted());
    results = [];
    if (role === "assistant") spoken.push(text);
  }
  return [...spoken, ...results.toSorted()];
}

/** The data that one window of a client received about an exchange, over all its connections. */
export class Hearing {
  /** Ids of the troupe turns to which the wire's ids refer. */
  readonly turnIds = new Set<string>();
  /** The texts shown when a connection broke. */
  readonly cutTexts: string[] = [];
  readonly ends: Heard[] = [];
  readonly #began = Promise.withResolvers<void>();
  #text = "";

  /** Resolves at the first text or at the end. */
  get began(): Promise<void> {
    return this.#began.promise;
  }

  isOf(turnId: string): void {
    this.turnIds.add(turnId);
  }

  show(text: string): void {
    this.#text = text;
    if (text !== "") this.#began.resolve();
  }

  cut(): void {
    this.cutTexts.push(this.#text);
    this.#text = "";
  }

  end(heard: Heard): Heard {
    this.ends.push(heard);
    this.#began.resolve();
    return heard;
  }
}

/** The client tool that a turn defines, if the wire supports it. */
export const stampTool = {
  name: "stamp",
  description: "Stamps a paper.",
  parameters: { type: "object", properties: { note: { type: "string" } } },
};

/** A conversation of a user in one window. Each method makes one attempt, which is repeated if its connection broke. */
export interface Talk {
  readonly deeds: readonly Deed[];
  /** Whether it has only one exchange, because later requests cannot return to it. */
  readonly isSingle?: boolean;
  /** Whether it has no keys, so that the same request from another window is another turn. */
  readonly isUnkeyed?: boolean;
  /** Begins a turn by its key, or continues it, until it rests. */
  send(exchange: Exchange, hearing: Hearing): Promise<Heard>;
  /** Answers the turn's open request and continues until it rests again. */
  answer(exchange: Exchange, asked: readonly Asked[], hearing: Hearing): Promise<Heard>;
  /** Ends a running turn. */
  cancel(exchange: Exchange): Promise<void>;
  /** Opens the same conversation in another window of the same user. */
  twin(line: Line): Promise<Talk>;
}

/** A protocol, used through its official client. */
export interface Wire {
  /** Name in its scenario's name. */
  readonly name: string;
  readonly surface: SurfaceName;
  /** Begins a conversation with a new name. */
  open(line: Line, conversation: string): Promise<Talk>;
}
