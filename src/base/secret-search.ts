/** Where a secret was found in a text, however escaped. */
export interface SecretPlace {
  readonly from: number;
  readonly to: number;
  /** Index of the secret. */
  readonly secret: number;
}

/** A text with some layers of escaping taken away. */
export interface Reading {
  readonly text: string;
  /** The place in the original text. */
  readonly placeOf: (index: number) => number;
}

/**
 * Most readings of one text. A layer of JSON halves the backslashes at a place, one of a URL takes a `25` away, so honest
 * texts need a few; a bound is needed since escapes can be written that lose one character at a time.
 */
const mostReadings = 24;

/**
 * The text as it is, and all texts that taking layers of escaping away makes of it, those with few layers first. JSON is
 * put into JSON, into YAML and into URLs, to any depth, and each layer writes a secret differently.
 */
export function readingsOf(text: string): Reading[] {
  const readings: Reading[] = [{ text, placeOf: (index) => index }];
  const known = new Set([text]);
  for (const reading of readings) {
    for (const next of [withoutBackslashes(reading), withoutPercents(reading)]) {
      if (next === undefined || known.has(next.text)) continue;
      if (readings.length >= mostReadings) return readings;
      known.add(next.text);
      readings.push(next);
    }
  }
  return readings;
}

const backslashEscape = /\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U([0-9a-fA-F]{8})|(["'\\/bfnrt0aevNLP_ ]))/g;

/** The letters after a backslash in JSON and YAML. */
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

/** Without one layer of JSON or YAML. */
function withoutBackslashes(reading: Reading): Reading | undefined {
  if (!reading.text.includes("\\")) return undefined;
  return withoutEscapes(reading, backslashEscape, ([, unit, byte, point, letter = ""]) => {
    const code = Number.parseInt(unit ?? byte ?? point ?? "", 16);
    if (Number.isNaN(code)) return characters[letter] ?? letter;
    if (code > 0x10_ff_ff) return undefined;
    // The halves of a surrogate pair are written as two escapes.
    return code > 0xff_ff ? String.fromCodePoint(code) : String.fromCharCode(code);
  });
}

/** One character each, in UTF-8. */
const percentEscape =
  /%[0-7][\da-f]|%[cd][\da-f]%[89ab][\da-f]|%e[\da-f](?:%[89ab][\da-f]){2}|%f[0-7](?:%[89ab][\da-f]){3}/gi;

/** Without one layer of a URL. The `+` of a form stays: it may be a plus sign as well. */
function withoutPercents(reading: Reading): Reading | undefined {
  if (!reading.text.includes("%")) return undefined;
  return withoutEscapes(reading, percentEscape, ([escaped]) => {
    try {
      return decodeURIComponent(escaped);
    } catch {
      return undefined;
    }
  });
}

/** Replaces each escape by its character; `characterOf` gives undefined for one that stays. */
function withoutEscapes(
  { text, placeOf }: Reading,
  escapes: RegExp,
  characterOf: (match: RegExpExecArray) => string | undefined,
): Reading | undefined {
  let plain = "";
  let from = 0;
  // From each of these indexes to the next, the plain text and the given one are the same.
  const plainStarts = [0];
  const givenStarts = [0];
  for (const match of text.matchAll(escapes)) {
    const character = characterOf(match);
    if (character === undefined) continue;
    plain += text.slice(from, match.index) + character;
    from = match.index + match[0].length;
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

/** Finds known secrets in all readings of a text. */
export class SecretSearch {
  readonly #needles: readonly { readonly text: string; readonly secret: number }[];

  /** @param shortest Secrets of fewer characters are not looked for: they are in any text by chance. */
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

/** URLs hold no lone halves of surrogate pairs, and forms write a space as `+`. */
function formsOf(secret: string): string[] {
  const wellFormed = secret.toWellFormed();
  return [...new Set([secret, wellFormed, wellFormed.replaceAll(" ", "+")])];
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
