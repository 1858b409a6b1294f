import { InvalidInputError } from "../errors/index.ts";
import { activeTrace, type TraceHeaders } from "../base/index.ts";
import { type Content, contentSchema, traceHeadersSchema } from "../state/index.ts";
import type { TurnOptions } from "./turn-types.ts";

/** Longest `data:` URL of an image that is taken, in characters: about 15 MB of image. */
const IMAGE_CHARACTERS = 20_000_000;

const dataUrl = /^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}$/;

/**
 * The span under which a turn is asked for: the one that is given, or that is active here. Throws `InvalidInputError` for
 * input that is none, and for headers that are none.
 */
export function checkedTurn(input: Content | null, { trace }: Pick<TurnOptions, "trace">): TraceHeaders | undefined {
  assertInput(input);
  if (trace === undefined) return activeTrace();
  const parsed = traceHeadersSchema.safeParse(trace);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const where = issue?.path.map(String).join(".") ?? "";
  throw new InvalidInputError(`executeTurn({ trace }) takes the W3C headers of a span; ${where} ${issue?.message}`);
}

/** Throws `InvalidInputError` that says which part of a turn's input is wrong, and what would be right. */
function assertInput(input: Content | null): void {
  if (input === null || typeof input === "string") return;
  const parsed = contentSchema.safeParse(input);
  if (!parsed.success || typeof parsed.data === "string") {
    const [issue] = parsed.success ? [] : parsed.error.issues;
    const where = issue && issue.path.length > 0 ? ` (${issue.path.map(String).join(".")}: ${issue.message})` : "";
    throw new InvalidInputError(
      `executeTurn() takes a text, a list of content parts, or null to continue without a message${where}`,
    );
  }
  if (parsed.data.length === 0) throw new InvalidInputError("the list of content parts is empty; use null, or a text");
  for (const [index, part] of parsed.data.entries()) if (part.type === "image") assertImage(part.url, index);
}

function assertImage(url: string, index: number): void {
  const refuse = (what: string): InvalidInputError => new InvalidInputError(`content part ${index}: ${what}`);
  if (url.startsWith("data:")) {
    if (url.length > IMAGE_CHARACTERS) {
      throw refuse(`the image has ${url.length} characters; up to ${IMAGE_CHARACTERS} are taken: give its https: URL`);
    }
    if (dataUrl.test(url)) return;
    throw refuse("the data: URL must be of an image, base64: data:image/png;base64,… (png, jpeg, gif or webp)");
  }
  const { protocol } = URL.canParse(url) ? new URL(url) : { protocol: "" };
  if (protocol === "https:" || protocol === "http:") return;
  throw refuse(`"${url.slice(0, 80)}" is no URL of an image; use https:, or data: with base64`);
}
