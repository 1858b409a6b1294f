import { copyOfJson } from "../base/index.ts";
import type { Json } from "../state/index.ts";
import { headOf } from "./output.ts";

const maxDescribedCharacters = 500;

/** A call in words for the person who decides on it: `name(arguments as JSON, cut at 500 characters)`. */
export function describeByArguments(name: string, args: Json): string {
  const text = JSON.stringify(args);
  const shown = text.length > maxDescribedCharacters ? `${headOf(text, maxDescribedCharacters)}…` : text;
  return `${name}(${shown})`;
}

/**
 * The author's own words, or the arguments where there are none. A description that throws or is no text must not keep
 * a person from deciding: the arguments are shown instead. Never throws.
 */
export function describer(name: string, describe: ((args: never) => string) | undefined): (args: Json) => string {
  return (args) => {
    if (describe === undefined) return describeByArguments(name, args);
    try {
      const words: unknown = describe(copyOfJson(args) as never);
      if (typeof words === "string" && words.trim() !== "") return words;
    } catch {
      // Told below, by the arguments.
    }
    return describeByArguments(name, args);
  };
}
