/** Where a secret stands in a text, in whatever escaping. */
export interface SecretPlace {
  readonly from: number;
  readonly to: number;
  /** Which of the secrets. */
  readonly secret: number;
}

/**
 * A text as it reads when its escapes are taken away once more. JSON texts are put into JSON texts, to any depth, and the
 * outermost into YAML: each time a secret is written otherwise, so that it is looked for in every reading.
 */
export interface Reading {
  readonly text: string;
  /** The place in the text as it was given. */
  placeOf(index: number): number;
}

/**
 * Readings of one text. Each halves the backslashes at a place, so that more of them than this need thousands in a row;
 * a bound there has to be, since escapes can be written that lose one character at a time.
 */
const mostReadings = 16;

/** The text as it is, and with its escapes taken away once, twice, … to where none are left. */
export function readingsOf(text: string): Reading[] {
  const readings: Reading[] = [{ text, placeOf: (index) => index }];
  for (let last = readings[0]; last !== undefined && readings.length < mostReadings; last = readings.at(-1)) {
    const next = unescaped(last);
    if (next === undefined) break;
    readings.push(next);
  }
  return readings;
}

const escape = /\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U([0-9a-fA-F]{8})|(["'\\/bfnrt0aevNLP_ ]))/g;

/** What JSON and YAML write for one character. */
const characters: Readonly<Record<string, string>> = {
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  "0": "\0",
  a: "\x07",
  e: "\x1b",
  v: "\v",
  N: "\x85",
  _: "\xa0",
  L: "\u2028",
  P: "\u2029",
};

function unescaped({ text, placeOf }: Reading): Reading | undefined {
  if (!text.includes("\\")) return undefined;
  let plain = "";
  let from = 0;
  // From the first index of each pair on, the plain text and the given one run alike.
  const plainStarts = [0];
  const givenStarts = [0];
  for (const match of text.matchAll(escape)) {
    const [whole, unit, byte, point, letter = ""] = match;
    const code = Number.parseInt(unit ?? byte ?? point ?? "", 16);
    if (code > 0x10_ff_ff) continue;
    plain += text.slice(from, match.index);
    plain += Number.isNaN(code) ? (characters[letter] ?? letter) : stringOf(code);
    from = match.index + whole.length;
    plainStarts.push(plain.length);
    givenStarts.push(from);
  }
  if (from === 0) return undefined;
  const placeIn = (index: number): number => {
    const run = lastAtMost(plainStarts, index);
    return (givenStarts[run] ?? 0) + index - (plainStarts[run] ?? 0);
  };
  return { text: plain + text.slice(from), placeOf: (index) => placeOf(placeIn(index)) };
}

/** Halves of a pair are written apart. */
function stringOf(code: number): string {
  return code > 0xff_ff ? String.fromCodePoint(code) : String.fromCharCode(code);
}

function lastAtMost(sorted: readonly number[], value: number): number {
  let low = 0;
  let high = sorted.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((sorted[middle] ?? 0) <= value) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Finds known secrets: as they are, escaped to any depth, and as parts of URLs. */
export class SecretSearch {
  readonly #needles: readonly { readonly text: string; readonly secret: number }[];

  /** @param shortest Forms of fewer characters are not looked for: they stand in any text by chance. */
  constructor(secrets: readonly string[], shortest: number) {
    this.#needles = secrets.flatMap((secret, index) =>
      formsOf(secret)
        .filter((text) => text.length >= shortest)
        .map((text) => ({ text, secret: index })),
    );
  }

  /** All places, in no order; one may be found more than once. */
  placesIn(readings: readonly Reading[]): SecretPlace[] {
    return readings.flatMap((reading) => this.#needles.flatMap(({ text, secret }) => findAll(reading, text, secret)));
  }
}

function formsOf(secret: string): readonly string[] {
  const inUrl = encodeURIComponent(secret.toWellFormed());
  const inForm = new URLSearchParams([["", secret]]).toString().slice(1);
  return [...new Set([secret, inUrl, inForm, lowered(inUrl), lowered(inForm)])];
}

function lowered(encoded: string): string {
  return encoded.replaceAll(/%[0-9A-F]{2}/g, (escaped) => escaped.toLowerCase());
}

function findAll({ text, placeOf }: Reading, needle: string, secret: number): SecretPlace[] {
  const places: SecretPlace[] = [];
  let open: { from: number; to: number } | undefined;
  const close = (): void => {
    if (open) places.push({ from: placeOf(open.from), to: placeOf(open.to), secret });
  };
  for (let at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, at + 1)) {
    const to = at + needle.length;
    if (open && at < open.to) open.to = to;
    else {
      close();
      open = { from: at, to };
    }
  }
  close();
  return places;
}
