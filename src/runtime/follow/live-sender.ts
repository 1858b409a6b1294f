import type { Clock } from "../../base/index.ts";
import type { LiveChannel, LivePlace } from "../../stores/index.ts";
import type { LivePart } from "./live-part.ts";

/** How long pieces are gathered before they are sent together, in milliseconds. */
const GATHER_MS = 30;
/** Parts of one tree, and characters in them, that may wait to be sent; what comes after them is dropped. */
const MOST_PARTS = 500;
const MOST_CHARACTERS = 500_000;

export interface LiveSenderOptions extends Pick<LivePlace, "tenant" | "processId"> {
  readonly channel: LiveChannel;
  readonly clock: Clock;
}

interface Waiting {
  /** Text and reasoning of a call are one part each, whatever else comes in between. */
  readonly parts: Map<string, LivePart>;
  size: number;
}

/** Sends what is said live to other processes, many pieces at a time, where somebody there follows. */
export class LiveSender {
  readonly #options: LiveSenderOptions;
  readonly #waiting = new Map<string, Waiting>();
  #cancel: (() => void) | undefined;

  constructor(options: LiveSenderOptions) {
    this.#options = options;
  }

  add(part: LivePart): void {
    const { rootAgentId } = part;
    if (!this.#options.channel.isFollowed(this.#placeOf(rootAgentId))) return;
    const waiting = this.#waiting.get(rootAgentId) ?? { parts: new Map<string, LivePart>(), size: 0 };
    this.#waiting.set(rootAgentId, waiting);
    if (waiting.parts.size >= MOST_PARTS || waiting.size >= MOST_CHARACTERS) return;
    gather(waiting, part);
    this.#cancel ??= this.#options.clock.setDelay(GATHER_MS, () => {
      this.#cancel = undefined;
      for (const root of this.#waiting.keys()) this.flush(root);
    });
  }

  /** Sends what waits for a tree at once. */
  flush(rootAgentId: string): void {
    const waiting = this.#waiting.get(rootAgentId);
    if (!waiting) return;
    this.#waiting.delete(rootAgentId);
    this.#options.channel.send(this.#placeOf(rootAgentId), JSON.stringify([...waiting.parts.values()]));
  }

  close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#waiting.clear();
  }

  #placeOf(rootAgentId: string): LivePlace {
    const { tenant, processId } = this.#options;
    return { tenant, processId, rootAgentId };
  }
}

function gather(waiting: Waiting, part: LivePart): void {
  if (part.kind === "progress" || part.kind === "warning") {
    waiting.parts.set(`${part.kind} ${waiting.parts.size}`, part);
    waiting.size += part.kind === "warning" ? part.message.length : JSON.stringify(part.update).length;
    return;
  }
  const key = `${part.kind} ${part.agentId} ${part.seq}`;
  const known = waiting.parts.get(key);
  waiting.size += part.text.length;
  if (part.kind === "whole" || known === undefined || known.kind !== part.kind) waiting.parts.set(key, part);
  // What was dropped in between is found missing by its offset.
  else if (known.offset + known.text.length === part.offset) {
    waiting.parts.set(key, { ...known, text: known.text + part.text });
  }
}
