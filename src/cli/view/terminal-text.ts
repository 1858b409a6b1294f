import { stripVTControlCharacters, styleText } from "node:util";

/** Words of ASCII and tree branches, separated by single spaces. */
const plainLine = /^[\x21-\x7e─│├└…]+(?: [\x21-\x7e─│├└…]+)*$/;

/**
 * Makes foreign text safe to print: texts of models and files may contain escape sequences that move the cursor or
 * rename the window. Keeps line breaks; tabs become spaces.
 */
export function printable(text: string): string {
  return stripVTControlCharacters(text)
    .replaceAll("\r\n", "\n")
    .replaceAll("\t", "  ")
    .replaceAll(/[\p{Control}\u202A-\u202E\u2066-\u2069]/gu, (character) => (character === "\n" ? "\n" : ""));
}

/** Like `printable`, on a single line. */
export function oneLine(text: string): string {
  return plainLine.test(text) ? text : printable(text).replaceAll(/\s+/gu, " ").trim();
}

export type Style = "plain" | "dim" | "bold" | "red" | "green" | "yellow" | "cyan";

export type Paint = (style: Style, text: string) => string;

/** Colours, unless `NO_COLOR` is a non-empty string (no-color.org) or the terminal is dumb. */
export function paintFor(environment: Readonly<Record<string, string | undefined>>): Paint {
  const isPlain = (environment["NO_COLOR"] ?? "") !== "" || environment["TERM"] === "dumb";
  return (style, text) => {
    if (isPlain || style === "plain" || text === "") return text;
    return styleText(style, text, { validateStream: false });
  };
}
