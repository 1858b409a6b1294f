import { CorruptRecordError } from "../../errors/index.ts";

/** A timer that cannot be read rings for nobody, and keeps no other from ringing: it is told once, and left as it is. */
export class DamagedTimers {
  readonly #told = new Set<string>();

  /** Undefined for what cannot be read. */
  passedOver<T>(read: () => T): T | undefined {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof CorruptRecordError)) throw error;
      const { message } = error;
      if (!this.#told.has(message)) {
        this.#told.add(message);
        process.emitWarning(`${message}; it does not ring`, { code: "TROUPE_CORRUPT_RECORD" });
      }
      return undefined;
    }
  }
}
