export type Style = "plain" | "dim" | "bold" | "red" | "green" | "yellow" | "cyan";

const codes: Readonly<Record<Exclude<Style, "plain">, readonly [number, number]>> = {
  dim: [2, 22],
  bold: [1, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
};

export type Paint = (style: Style, text: string) => string;

/** Colours, or none where they are not wanted: `NO_COLOR` with any value but the empty one (no-color.org). */
export function paintFor(environment: Readonly<Record<string, string | undefined>>): Paint {
  const isPlain = (environment["NO_COLOR"] ?? "") !== "" || environment["TERM"] === "dumb";
  return (style, text) => {
    if (isPlain || style === "plain" || text === "") return text;
    const [on, off] = codes[style];
    return `\u001B[${on}m${text}\u001B[${off}m`;
  };
}
