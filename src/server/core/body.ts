import { hasMoreValues, parseJson } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { ServerError } from "./failures.ts";

export interface BodyBounds {
  readonly maxBytes: number;
  /** Members, items and containers in total. */
  readonly maxValues: number;
}

export interface ReadBody {
  /** `undefined` without a body. */
  readonly value: unknown;
  /** In characters. */
  readonly length: number;
}

/**
 * Reads a JSON body within its limits, with or without a declared length. Throws `ServerError` with the codes
 * `body_too_large`, `unsupported_media_type` and `body_already_read`, and `InvalidInputError` for text that is invalid
 * JSON, nested too deeply, or has keys that reach a prototype.
 */
export async function readJson(request: Request, { maxBytes, maxValues }: BodyBounds): Promise<ReadBody> {
  if (request.bodyUsed) throw alreadyRead();
  const declared = Number(request.headers.get("content-length") ?? 0);
  if (declared > maxBytes) throw tooManyBytes(maxBytes);
  const text = await textWithin(request, maxBytes);
  // Node's adapter returns an empty body if other code has already read it.
  if (text === "" && declared > 0) throw alreadyRead();
  if (text === "") return { value: undefined, length: 0 };
  assertJson(request.headers);
  if (hasMoreValues(text, maxValues)) throw tooManyValues(maxValues);
  return { value: parseJson(text, { what: "the body", maxBytes }), length: text.length };
}

function assertJson(headers: Headers): void {
  const type = (headers.get("content-type") ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
  const encoding = (headers.get("content-encoding") ?? "identity").toLowerCase();
  if (encoding === "identity" && /^application\/([\w.+-]+\+)?json$/.test(type)) return;
  throw new ServerError(
    "unsupported_media_type",
    "the body must be JSON, not compressed: content-type: application/json",
  );
}

/** An earlier body parser has consumed the body. */
function alreadyRead(): ServerError {
  return new ServerError(
    "body_already_read",
    "the body was read before this handler: mount it before any body parser (express.json() and the like)",
  );
}

async function textWithin(request: Request, maxBytes: number): Promise<string> {
  const reader = readerOf(request);
  if (reader === undefined) return "";
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let bytes = 0;
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes += value.byteLength;
    if (bytes > maxBytes) {
      await reader.cancel().catch(() => undefined);
      throw tooManyBytes(maxBytes);
    }
    text += decoded(() => decoder.decode(value, { stream: true }));
  }
  return text + decoded(() => decoder.decode());
}

function readerOf(request: Request): ReadableStreamDefaultReader<Uint8Array> | undefined {
  try {
    return request.body?.getReader();
  } catch {
    throw alreadyRead();
  }
}

function decoded(decode: () => string): string {
  try {
    return decode();
  } catch {
    throw new InvalidInputError("the body is not UTF-8");
  }
}

function tooManyBytes(maxBytes: number): ServerError {
  return new ServerError("body_too_large", `the body is larger than the permitted ${maxBytes} bytes`, {
    headers: { connection: "close" },
  });
}

function tooManyValues(maxValues: number): ServerError {
  return new ServerError(
    "body_too_large",
    `the body has more than the permitted ${maxValues} values (members and items of all lists); send fewer, or let the server's operator raise limits.bodyValues`,
  );
}
