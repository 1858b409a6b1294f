import { createHash } from "node:crypto";
import type { JsonObject, ModelResponse } from "../state/index.ts";
import { type WireObject, wireObject, wireText } from "./wire-values.ts";

interface OpenCall {
  readonly index: number | undefined;
  id: string;
  name: string;
  arguments: string;
  extra: JsonObject | undefined;
}

interface CallPiece {
  readonly index: number | undefined;
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
  readonly extra: JsonObject | undefined;
}

/** Puts the pieces of tool calls together, also from servers that leave out or repeat what should tell them apart. */
export class ToolCallParts {
  readonly #calls: OpenCall[] = [];

  get isEmpty(): boolean {
    return this.#calls.length === 0;
  }

  /** Adds one entry of `tool_calls`. `isWhole`: it comes from an unstreamed answer, so it is a call by itself. */
  add(value: unknown, isWhole: boolean): void {
    const raw = wireObject(value);
    if (raw === undefined) return;
    const piece = readPiece(raw);
    const call = isWhole ? undefined : this.#callOf(piece);
    if (call === undefined) {
      if (piece.id !== "" || piece.name !== "" || piece.arguments !== "") this.#calls.push({ ...piece });
      return;
    }
    if (call.id === "") call.id = piece.id;
    // A name that is repeated with each piece is taken once; one that comes in pieces itself ends before its arguments.
    if (call.name === "" || (call.arguments === "" && piece.name !== call.name)) call.name += piece.name;
    call.arguments += piece.arguments;
    call.extra = piece.extra ?? call.extra;
  }

  /** Names and arguments so far, for counting. */
  text(): string {
    return this.#calls.map((call) => call.name + call.arguments).join("");
  }

  /** Each call with an id of its own: a missing id is made from `seed` and the call, so the same answer gives the same id. */
  calls(seed: string): ModelResponse["toolCalls"] {
    const used = new Set<string>();
    return this.#calls.map((call, position) => {
      const given = call.id === "" ? generatedId(seed, position, call) : call.id;
      const id = used.has(given) ? `${given}_${position}` : given;
      used.add(id);
      return { id, name: call.name, arguments: call.arguments.trim() === "" ? "{}" : call.arguments };
    });
  }

  /** Provider fields of calls that must go back with them (thought signatures), by the ids that `calls(seed)` gives. */
  extras(seed: string): readonly JsonObject[] {
    const ids = this.calls(seed);
    return this.#calls.flatMap((call, position) =>
      call.extra === undefined ? [] : [{ id: ids[position]?.id ?? "", extra_content: call.extra }],
    );
  }

  #callOf(piece: CallPiece): OpenCall | undefined {
    for (let position = this.#calls.length - 1; position >= 0; position -= 1) {
      const call = this.#calls[position];
      if (call === undefined) continue;
      if (piece.index !== undefined && call.index !== piece.index) continue;
      if (piece.id !== "" && call.id === piece.id) return call;
      // Another id at the same index is another call; the one meant may still be an earlier one.
      if (piece.id !== "" && call.id !== "") continue;
      return opensAnother(call, piece) ? undefined : call;
    }
    return undefined;
  }
}

/** Without an id, a call begins anew where a name comes although the last call has one and is complete. */
function opensAnother(call: OpenCall, piece: CallPiece): boolean {
  if (piece.name === "" || call.name === "") return false;
  if (isCompleteJson(call.arguments)) return piece.arguments !== "" || piece.name !== call.name;
  return piece.index === undefined && piece.name !== call.name;
}

function readPiece(raw: WireObject): CallPiece {
  const called = wireObject(raw["function"]) ?? raw;
  const given = called["arguments"];
  const extra = wireObject(raw["extra_content"]) as JsonObject | undefined;
  const index = raw["index"];
  return {
    index: typeof index === "number" ? index : undefined,
    id: wireText(raw["id"]),
    name: wireText(called["name"]),
    arguments: typeof given === "object" && given !== null ? JSON.stringify(given) : wireText(given),
    extra,
  };
}

function isCompleteJson(text: string): boolean {
  if (!text.trimEnd().endsWith("}")) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function generatedId(seed: string, position: number, call: OpenCall): string {
  const hash = createHash("sha256").update(JSON.stringify([seed, position, call.name, call.arguments]));
  return `call_${hash.digest("hex").slice(0, 16)}`;
}
