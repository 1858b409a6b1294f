import { InvalidInputError } from "../../errors/index.ts";
import type { CliContext } from "../cli-context.ts";

/** Argument that stands for standard input. */
const fromStandardInput = "-";

/** Maximum number of bytes read: more than any model accepts, but few enough for memory. */
export const mostInputBytes = 10_000_000;

/**
 * The text of an argument: the argument itself, or all of standard input for `-`, without the line break at its end.
 * Throws `InvalidInputError` if the input is empty, too long or not UTF-8.
 */
export async function readArgument({ stdin, note }: Pick<CliContext, "stdin" | "note">, word: string): Promise<string> {
  if (word !== fromStandardInput) return word;
  if (stdin.isTTY) note("Type the text; press Ctrl-D at the start of a line to end it, Ctrl-C to leave.");
  const text = decoded(await bytesOf(stdin)).replace(/\r?\n$/, "");
  if (text.trim() !== "") return text;
  throw new InvalidInputError("standard input is empty; pipe the text in, or give it instead of -");
}

async function bytesOf(stdin: CliContext["stdin"]): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of stdin as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > mostInputBytes) break;
      chunks.push(chunk);
    }
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new InvalidInputError(`standard input cannot be read: ${why}`, { cause });
  }
  if (size <= mostInputBytes) return Buffer.concat(chunks);
  throw new InvalidInputError(
    `standard input has more than ${mostInputBytes.toLocaleString("en-US")} bytes; shorten it, or give the agent a tool that reads the file`,
  );
}

function decoded(bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new InvalidInputError("standard input is not UTF-8 text; convert it first, for instance with iconv", {
      cause,
    });
  }
}
