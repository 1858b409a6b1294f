import { defineAgent, defineTool, type Runtime, type RuntimeOptions, type TroupeEvent } from "../../src/index.ts";
import { troupeEventSchema } from "../../src/state/index.ts";
import type { FakeClock } from "../../src/testing/index.ts";
import { z } from "zod";
import { elapse, loopTurns } from "./journal-probes.ts";
import type { Stage } from "./runtimes.ts";
import { SpokenModel } from "./spoken-model.ts";
import { TextClient } from "./text-client.ts";

const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({}),
  effect: "none",
  execute: () => "seen",
});

/** A reader of the tree "f", event by event. */
export class Reader {
  readonly client: TextClient;
  readonly events: TroupeEvent[] = [];
  readonly #clock: FakeClock;
  readonly #leaving = new AbortController();
  readonly #stream: AsyncIterator<TroupeEvent>;
  #taken = 0;
  #arrived = Promise.withResolvers<void>();

  /** `isSlow`: it reads an event only on request. */
  constructor({ clock }: Stage, runtime: Runtime, options: { client?: TextClient; isSlow?: boolean } = {}) {
    this.#clock = clock;
    this.client = options.client ?? new TextClient();
    const follow = { after: this.client.cursor, signal: this.#leaving.signal };
    this.#stream = runtime.follow("f", follow)[Symbol.asyncIterator]();
    if (!options.isSlow) void this.#pump();
  }

  /** The next event of this kind. */
  async until<Type extends TroupeEvent["type"]>(type: Type): Promise<Extract<TroupeEvent, { type: Type }>> {
    const read = async (): Promise<TroupeEvent> => {
      for (;;) {
        const event = this.events[this.#taken] ?? (await this.#next());
        this.#taken += 1;
        if (event.type === type) return event;
      }
    };
    return (await elapse(this.#clock, read(), 20)) as Extract<TroupeEvent, { type: Type }>;
  }

  leave(): void {
    this.#leaving.abort();
  }

  async #next(): Promise<TroupeEvent> {
    if (!this.#isPumped && !(await this.#take())) throw new Error("the stream has ended");
    for (let event = this.events[this.#taken]; ; event = this.events[this.#taken]) {
      if (event) return event;
      this.#arrived = Promise.withResolvers<void>();
      await this.#arrived.promise;
    }
  }

  #isPumped = false;
  async #pump(): Promise<void> {
    this.#isPumped = true;
    while (await this.#take()) this.#arrived.resolve();
  }

  async #take(): Promise<boolean> {
    const { value, done } = await this.#stream.next();
    if (done) return false;
    const event = troupeEventSchema.parse(value);
    this.events.push(event);
    this.client.take(event);
    return true;
  }
}

/** A runtime with an agent "f" whose model sends what the test passes. */
export async function openedSpeaker(stage: Stage, options: Pick<RuntimeOptions, "streaming"> = {}) {
  const spoken = new SpokenModel();
  const definition = defineAgent({ name: "speaker", model: spoken.model, tools: [look] });
  const owner = await stage.openProcess({ agents: [definition], ...options });
  const agent = await owner.runtime.agent("speaker", { agentId: "f" });
  await agent.start();
  return { spoken, definition, owner, runtime: owner.runtime, agent };
}

/** Resolves when the owner knows that a client elsewhere follows the tree. */
export async function heard(runtime: Runtime): Promise<void> {
  const place = { tenant: runtime.tenant, rootAgentId: "f", processId: "somebody" };
  while (!runtime.stores.live.isFollowed(place)) await loopTurns(1);
}
