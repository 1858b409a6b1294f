import { createHash } from "node:crypto";
import type { JsonObject, ModelResponse } from "../state/index.ts";
import { ModelError } from "../errors/index.ts";
import { MOST_CALLS, type ModelDelta } from "./language-model.ts";
import { isJsonObject, type WireObject, wireObject, wireText } from "./wire-values.ts";

interface OpenCall {
  readonly index: number | undefined;
  id: string;
  name: string;
  readonly arguments: ObjectText;
  extra: JsonObject | undefined;
  /** Whether its name was reported. */
  isReported: boolean;
}

interface CallPiece {
  readonly index: number | undefined;
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
  readonly extra: JsonObject | undefined;
}

type Listener = ((delta: ModelDelta) => void) | undefined;

/**
 * Assembles tool calls from their pieces, even if a server omits or repeats ids, indexes or names. A call's name is reported once it is
 * complete: when its arguments or the next call begin, or at the end of the answer.
 */
export class ToolCallParts {
  readonly #calls: OpenCall[] = [];

  get isEmpty(): boolean {
    return this.#calls.length === 0;
  }

  /** Adds one entry of `tool_calls`. `isWhole`: the entry is a complete call of an unstreamed answer. */
  add(value: unknown, isWhole: boolean, onDelta?: Listener): void {
    const raw = wireObject(value);
    if (raw === undefined) return;
    const piece = readPiece(raw);
    const call = isWhole ? undefined : this.#callOf(piece);
    if (call === undefined) {
      if (piece.id === "" && piece.name === "" && piece.arguments === "") return;
      this.reportAll(onDelta);
      this.#report(this.#open(piece), piece, onDelta);
      return;
    }
    if (call.id === "") call.id = piece.id;
    // Some servers repeat the name in each piece: it is used once. A name that arrives in pieces is complete before its arguments begin.
    if (call.name === "" || (call.arguments.text === "" && piece.name !== call.name)) call.name += piece.name;
    call.arguments.add(piece.arguments);
    call.extra = piece.extra ?? call.extra;
    this.#report(call, piece, onDelta);
  }

  /** Reports the calls whose names were not reported yet: no further piece of a name follows. */
  reportAll(onDelta: Listener): void {
    if (onDelta === undefined) return;
    for (const [index, call] of this.#calls.entries()) announce(call, index, onDelta);
  }

  /** Names and arguments so far, for token counting. */
  text(): string {
    return this.#calls.map((call) => call.name + call.arguments.text).join("");
  }

  /** The calls, each with a unique id: a missing one is derived from `seed` and the call, so the same answer always gets the same ids. */
  calls(seed: string): ModelResponse["toolCalls"] {
    const used = new Set<string>();
    return this.#calls.map((call, position) => {
      const given = call.id === "" ? generatedId(seed, position, call) : call.id;
      const id = used.has(given) ? `${given}_${position}` : given;
      used.add(id);
      const { text } = call.arguments;
      return { id, name: call.name, arguments: text.trim() === "" ? "{}" : text };
    });
  }

  /** Provider fields that must be sent back with their calls (thought signatures), by the ids that `calls(seed)` returns. */
  extras(seed: string): readonly JsonObject[] {
    const ids = this.calls(seed);
    return this.#calls.flatMap((call, position) =>
      call.extra === undefined ? [] : [{ id: ids[position]?.id ?? "", extra_content: call.extra }],
    );
  }

  #open(piece: CallPiece): OpenCall {
    if (this.#calls.length === MOST_CALLS) throw tooManyCalls();
    const call = { ...piece, arguments: new ObjectText(piece.arguments), isReported: false };
    this.#calls.push(call);
    return call;
  }

  #report(call: OpenCall, { arguments: text }: CallPiece, onDelta: Listener): void {
    if (onDelta === undefined || text === "") return;
    const index = this.#calls.indexOf(call);
    announce(call, index, onDelta);
    onDelta({ type: "tool-arguments", index, text });
  }

  #callOf(piece: CallPiece): OpenCall | undefined {
    for (let position = this.#calls.length - 1; position >= 0; position -= 1) {
      const call = this.#calls[position];
      if (call === undefined) continue;
      if (piece.index !== undefined && call.index !== piece.index) continue;
      if (piece.id !== "" && call.id === piece.id) return call;
      // A different id at the same index means a different call; an earlier call may still match.
      if (piece.id !== "" && call.id !== "") continue;
      return opensAnother(call, piece) ? undefined : call;
    }
    return undefined;
  }
}

function announce(call: OpenCall, index: number, onDelta: (delta: ModelDelta) => void): void {
  if (call.isReported) return;
  call.isReported = true;
  onDelta({ type: "tool-call", index, id: call.id, name: call.name });
}

/** Without an id, a piece with a name starts a new call if the last call has a name and is complete. */
function opensAnother(call: OpenCall, piece: CallPiece): boolean {
  if (piece.name === "" || call.name === "") return false;
  if (call.arguments.isComplete()) return piece.arguments.trim() !== "" || piece.name !== call.name;
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

/**
 * The JSON text of an object that arrives in pieces. `isComplete` is called for each piece, so each character is scanned once, and the
 * text is parsed only when all brackets are closed.
 */
class ObjectText {
  text = "";
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  /** `wrong`: there is text before or after the object, or the text between the brackets is not valid JSON. */
  #state: "open" | "closed" | "complete" | "wrong" = "open";

  constructor(text: string) {
    this.add(text);
  }

  add(piece: string): void {
    this.text += piece;
    for (let at = 0; at < piece.length && this.#state !== "wrong"; at += 1) this.#take(piece.charCodeAt(at));
  }

  isComplete(): boolean {
    if (this.#state === "closed") this.#state = isJsonObject(this.text) ? "complete" : "wrong";
    return this.#state === "complete";
  }

  #take(code: number): void {
    if (this.#isInString) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (code === backslash) this.#isEscaped = true;
      else if (code === quote) this.#isInString = false;
      return;
    }
    if (blanks.has(code)) return;
    if (this.#state !== "open" || (this.#depth === 0 && code !== openingBrace)) this.#state = "wrong";
    else if (code === quote) this.#isInString = true;
    else if (code === openingBrace || code === openingBracket) this.#depth += 1;
    else if (code === closingBrace || code === closingBracket) {
      this.#depth -= 1;
      if (this.#depth === 0) this.#state = "closed";
    }
  }
}

const quote = 0x22;
const backslash = 0x5c;
const openingBracket = 0x5b;
const closingBracket = 0x5d;
const openingBrace = 0x7b;
const closingBrace = 0x7d;
/** White space that JSON allows between tokens. */
const blanks: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);

export function tooManyCalls(): ModelError {
  return new ModelError(`The model's answer has more than the permitted ${MOST_CALLS} tool calls.`, {
    retryable: true,
    mayHaveBeenSent: true,
    details: { kind: "malformed" },
  });
}

function generatedId(seed: string, position: number, call: OpenCall): string {
  const hash = createHash("sha256").update(JSON.stringify([seed, position, call.name, call.arguments.text]));
  return `call_${hash.digest("hex").slice(0, 16)}`;
}
