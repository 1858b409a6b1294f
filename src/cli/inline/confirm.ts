import { InvalidInputError } from "../../errors/index.ts";
import type { CliContext } from "../cli-context.ts";
import { ReadlineInput } from "./line-input.ts";

/** Asks a person before something that cannot be undone. Throws `InvalidInputError` if there is no terminal to ask on. */
export async function confirm({ stdin, stdout }: CliContext, question: string): Promise<boolean> {
  if (!stdin.isTTY || !stdout.isTTY) {
    throw new InvalidInputError(
      `${question} Without a terminal, add --yes; --dry-run only shows what would be deleted`,
    );
  }
  const interrupted = new AbortController();
  const input = new ReadlineInput({
    input: stdin,
    output: stdout,
    isTerminal: true,
    onInterrupt: () => interrupted.abort(),
  });
  try {
    const read = await input.next(`${question} [y/N] `, { signal: interrupted.signal });
    return typeof read === "object" && /^y(?:es)?$/i.test(read.line.trim());
  } finally {
    input.close();
  }
}
