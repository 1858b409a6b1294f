import type { SurfaceName } from "../serving/node.ts";
import type { Line } from "./wire-client.ts";

/**
 * What a turn of the teller of chaos/serving/team.ts does: only answers; calls tools and a subagent; a tool that needs an
 * approval; a tool of the client that its definition or the turn names; a question; an answer so long that it is canceled.
 */
export type Deed = "talk" | "work" | "pay" | "sign" | "stamp" | "ask" | "drone";

/** A turn as the client asks for it, each time in the same words and with the same key. */
export interface Exchange {
  readonly key: string;
  readonly deed: Deed;
  /** What the user says; no other user says the same. */
  readonly text: string;
  /** What the client answers when it is asked. */
  readonly answer: string;
}

/** Something that a turn waits for. */
export interface Asked {
  /** As the wire names it. */
  readonly id: string;
  readonly kind: "approval" | "question" | "client";
  /** What the wire wants to have back with an approval. */
  readonly proof?: string | undefined;
}

/** A turn where it rests, as the client was told. */
export interface Heard {
  readonly state: "completed" | "waiting" | "canceled" | "failed";
  /** The answer as the client shows it. */
  readonly text: string;
  readonly asked: readonly Asked[];
  /** What the client shows of the whole conversation, where it keeps one: `spokenOf` its messages. */
  readonly shown?: readonly string[] | undefined;
}

/**
 * What was said by the agent and by its tools, in order. Results that follow each other are sorted: they are shown in the order
 * in which they came, and stored in that of their calls.
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

/** What one window of a client was told of an exchange, over all its connections. */
export class Hearing {
  /** Ids of our turns that the wire's own ids mean. */
  readonly turnIds = new Set<string>();
  /** The text as it was shown whenever a connection broke. */
  readonly cutTexts: string[] = [];
  readonly ends: Heard[] = [];
  readonly #began = Promise.withResolvers<void>();
  #text = "";

  /** Resolves when the first text has come, or the end. */
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

/** The tool of the client that a turn names, where the wire has such. */
export const stampTool = {
  name: "stamp",
  description: "Stamps a paper.",
  parameters: { type: "object", properties: { note: { type: "string" } } },
};

/** A conversation of a user in one window. A method makes one attempt, which is made again when its connection broke. */
export interface Talk {
  readonly deeds: readonly Deed[];
  /** It has one exchange: no later request comes back to it. */
  readonly isSingle?: boolean;
  /** It has no keys: the same request from another window is another turn. */
  readonly isUnkeyed?: boolean;
  /** Begins a turn by its key, or goes on with it, up to where it rests. */
  send(exchange: Exchange, hearing: Hearing): Promise<Heard>;
  /** Gives the turn what it waits for, up to where it rests next. */
  answer(exchange: Exchange, asked: readonly Asked[], hearing: Hearing): Promise<Heard>;
  /** Ends a turn that is under way. */
  cancel(exchange: Exchange): Promise<void>;
  /** The same conversation as it is now, in another window of the same user. */
  twin(line: Line): Promise<Talk>;
}

/** A protocol, as its official client speaks it. */
export interface Wire {
  /** In the name of its scenario. */
  readonly name: string;
  readonly surface: SurfaceName;
  /** Begins a conversation under a name of its own. */
  open(line: Line, conversation: string): Promise<Talk>;
}
