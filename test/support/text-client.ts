import { parseCursor, type TroupeEvent } from "../../src/state/index.ts";

/** A client that builds the text of each step from a tree's events only, over many streams. */
export class TextClient {
  /** The received text of each step, by `agent turn step`. */
  readonly shown = new Map<string, string>();
  readonly thought = new Map<string, string>();
  readonly durable: TroupeEvent[] = [];
  readonly snapshots: TroupeEvent[] = [];
  /** Events that a client must never receive. */
  readonly faults: string[] = [];
  readonly #closed = new Set<string>();

  /** The cursor after which a stream that replaces this one must begin. */
  get cursor(): string | undefined {
    return this.durable.at(-1)?.cursor ?? undefined;
  }

  take(event: TroupeEvent): void {
    const step = `${event.agentId} ${event.turnId} ${event.step}`;
    if (event.cursor === null) {
      if (!("after" in event)) return this.#fault("neither durable nor ephemeral", event);
      if (event.after !== (this.cursor ?? null)) this.#fault(`after ${event.after}, at ${this.cursor}`, event);
    } else this.#takeDurable(event);
    switch (event.type) {
      case "step.started":
      case "step.restarted":
        this.shown.set(step, "");
        this.thought.set(step, "");
        break;
      case "text.delta":
        this.#append(this.shown, step, event);
        break;
      case "reasoning.delta":
        this.#append(this.thought, step, event);
        break;
      case "text.snapshot":
        if (this.#closed.has(step)) this.#fault("after its end", event);
        if (event.offset !== event.text.length) this.#fault("goes on elsewhere than at its end", event);
        this.snapshots.push(event);
        this.shown.set(step, event.text);
        if (event.reasoning !== null) this.thought.set(step, event.reasoning);
        break;
      case "model.responded":
        this.#closed.add(step);
        break;
      default:
    }
  }

  textOf(agentId: string, turnId: string, step: number): string | undefined {
    return this.shown.get(`${agentId} ${turnId} ${step}`);
  }

  #takeDurable(event: TroupeEvent): void {
    const [last, at] = [parseCursor(this.cursor ?? "0.0.0"), parseCursor(event.cursor ?? "")];
    const places = [last, at].map((cursor) => [cursor?.row ?? 0, cursor?.seq ?? 0, cursor?.index ?? 0]);
    const [before = [], now = []] = places;
    const differs = now.findIndex((part, index) => part !== before[index]);
    if (this.cursor !== undefined && (differs < 0 || (now[differs] ?? 0) < (before[differs] ?? 0))) {
      this.#fault(`not after ${this.cursor}`, event);
    }
    this.durable.push(event);
  }

  #append(texts: Map<string, string>, step: string, event: TroupeEvent & { offset: number; text: string }): void {
    const text = texts.get(step) ?? "";
    if (this.#closed.has(step)) this.#fault("after its end", event);
    if (event.offset !== text.length) this.#fault(`at ${event.offset}, with ${text.length} shown`, event);
    texts.set(step, text + event.text);
  }

  #fault(what: string, { type, agentId, turnId, step, cursor }: TroupeEvent): void {
    this.faults.push(`${type} ${cursor ?? ""} of ${agentId} ${turnId} ${step}: ${what}`);
  }
}
