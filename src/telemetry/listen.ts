import { portRule, reading } from "../base/index.ts";
import type { Runtime } from "../runtime/index.ts";
import type { TroupeEvent } from "../state/index.ts";

/** What logs and traces need of a runtime. */
export type EventFeed = Pick<Runtime, "subscribe">;

/** Throws `InvalidInputError` for what nothing can be heard of. */
export function assertRuntime(runtime: unknown, of: string, methods: readonly string[] = ["subscribe"]): void {
  reading(of, () => portRule("a runtime, as createRuntime() makes it", methods)(runtime, `${of}: its runtime`));
}

/** The rule of an option that takes a redactor. */
export const redactorRule = portRule("a redactor, for instance createRedactor()", ["text", "value", "message"]);

/** Something that listens to a runtime until it is closed. */
export interface Telemetry {
  /** Resolves when all that was heard so far is written. */
  flush(): Promise<void>;
  /** Listens no more, and flushes. Call it before the runtime is shut down where it reads the store. */
  close(): Promise<void>;
}

/** Warns of the first fault only: one that lasts would be told for every event. */
export function warnOnce(what: string): (error: unknown) => void {
  let isTold = false;
  return (error) => {
    if (isTold) return;
    isTold = true;
    process.emitWarning(`${what}: ${error instanceof Error ? error.message : String(error)}`, {
      code: "TROUPE_TELEMETRY",
    });
  };
}

/** Listens without ever harming who is listened to. The returned function ends it. */
export function listen(feed: EventFeed, what: string, listener: (event: TroupeEvent) => void): () => void {
  const warn = warnOnce(`${what} could not take an event`);
  const subscription = feed.subscribe((event) => {
    try {
      listener(event);
    } catch (error) {
      warn(error);
    }
  });
  return () => subscription.unsubscribe();
}
