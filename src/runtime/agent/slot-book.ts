import { createSlots, type Slots } from "../../tools/index.ts";

/** The slots of tools that run only so many at a time in this process, by the tools' names. */
export class SlotBook {
  readonly #slots = new Map<string, Slots>();

  of(toolName: string, limit: number): Slots {
    const known = this.#slots.get(toolName) ?? createSlots(limit);
    this.#slots.set(toolName, known);
    return known;
  }
}
