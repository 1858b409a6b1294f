import type { Json, JsonObject } from "../state/index.ts";
import { type WireObject, wireArray, wireObject, wireParts, wireText } from "./wire-values.ts";

/** Fields of an answer that carry reasoning, as text. Servers use one, or both with the same content. */
const textFields = ["reasoning_content", "reasoning"] as const;
/** Fields inside `reasoning_details` that arrive in pieces; all others arrive whole. */
const growingFields: ReadonlySet<string> = new Set(["text", "summary", "data"]);

/** Gathers the reasoning fields of an answer so that they can be sent back as they came. */
export class ReasoningParts {
  readonly #texts = new Map<string, string>();
  readonly #details: Record<string, unknown>[] = [];
  #thinking = "";

  /** Adds what a delta or message holds and gives the new text for listeners: each piece once, however often it was sent. */
  add(delta: WireObject): string {
    let news = "";
    for (const field of textFields) {
      const text = wireText(delta[field]);
      if (text === "") continue;
      this.#texts.set(field, (this.#texts.get(field) ?? "") + text);
      if (news === "") news = text;
    }
    for (const entry of wireArray(delta["reasoning_details"])) {
      const text = this.#addDetail(wireObject(entry));
      if (this.#texts.size === 0) news += text;
    }
    const thinking = typeof delta["content"] === "object" ? wireParts(delta["content"], "thinking", "thinking") : "";
    this.#thinking += thinking;
    return news + thinking;
  }

  /** Reasoning text so far, for counting. */
  text(): string {
    const details = this.#details.map((detail) => wireText(detail["text"]) + wireText(detail["summary"])).join("");
    const longest = [...this.#texts.values(), details].reduce((a, b) => (b.length > a.length ? b : a));
    return longest + this.#thinking;
  }

  /** The fields for replay; `undefined` when there was no reasoning. */
  fields(): JsonObject | undefined {
    if (this.#texts.size === 0 && this.#details.length === 0) return undefined;
    const details = this.#details as readonly Json[];
    return { ...Object.fromEntries(this.#texts), ...(details.length === 0 ? {} : { reasoning_details: details }) };
  }

  #addDetail(entry: WireObject | undefined): string {
    if (entry === undefined) return "";
    const news = wireText(entry["text"]) + wireText(entry["summary"]);
    const last = this.#details.findLast((detail) => continues(detail, entry));
    if (last === undefined) {
      this.#details.push({ ...entry });
      return news;
    }
    for (const [field, value] of Object.entries(entry)) {
      if (value === null || value === undefined) continue;
      last[field] = growingFields.has(field) ? wireText(last[field]) + wireText(value) : value;
    }
    return news;
  }
}

function continues(detail: WireObject, piece: WireObject): boolean {
  if (detail["type"] !== piece["type"] || detail["index"] !== piece["index"]) return false;
  const id = piece["id"];
  return id === undefined || id === null || detail["id"] === undefined || detail["id"] === null || detail["id"] === id;
}
