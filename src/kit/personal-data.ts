import { setImmediate } from "node:timers/promises";

/** A kind of personal data that `piiGuard()` finds. */
export type PersonalData = "email" | "card" | "iban" | "phone" | "ssn";

interface Finder {
  /**
   * A run of characters that begins as this kind does; perhaps more than one of its kind. Its time is linear in the length of the text: no
   * part can match the same characters in two ways, or it has an upper bound.
   */
  readonly pattern: RegExp;
  readonly isOne: (found: string) => boolean;
}

const digitsOf = (text: string): string => text.replaceAll(/\D/g, "");

/** In this order: what one kind has found is not looked at by the next. */
const finders: Readonly<Record<PersonalData, Finder>> = {
  email: {
    pattern: /(?<![\w.+-])[\w.+-]+@(?:[\p{L}\d-]{1,63}\.){1,8}\p{L}{2,63}(?![\w-])/gu,
    isOne: () => true,
  },
  iban: {
    pattern: /(?<![\p{L}\d])[A-Z]{2}\d{2}(?:[ -]?[A-Z\d]){11,30}(?![\p{L}\d])/giu,
    isOne: (found) => isIban(found.replaceAll(/[ -]/g, "").toUpperCase()),
  },
  card: {
    pattern: /(?<![\d.,])\d{4}(?:[ -]?\d){9,27}(?!\d)/g,
    isOne: (found) => isGroupedCard.test(found) && isLuhn(digitsOf(found)),
  },
  ssn: {
    pattern: /(?<![\d-])(?!000|666|9\d\d)\d{3}([- ])(?!00)\d{2}\1(?!0000)\d{4}(?![\d-])/g,
    isOne: () => true,
  },
  phone: {
    pattern: /(?<![\p{L}\d.,+-])(?:\+\d|\(\d{3}\)|\(?0|\d{3}[ .-])[\d ()./-]{4,40}\d(?![\d\p{L}])/gu,
    isOne: isPhone,
  },
};

export const personalDataKinds = Object.keys(finders) as readonly PersonalData[];

/** A place in a text with personal data. */
export interface FoundData {
  readonly kind: PersonalData;
  readonly from: number;
  readonly to: number;
}

/** Characters that are searched at a time, so that the event loop is not blocked, and how far a place may reach out of them. */
const WINDOW = 4_096;
const REACH = 512;

/** Places with personal data of these kinds, in the order of the text; they do not overlap. */
export async function findPersonalData(text: string, kinds: readonly PersonalData[]): Promise<readonly FoundData[]> {
  const found: FoundData[] = [];
  for (let start = 0; start < text.length; start += WINDOW) {
    if (start > 0) await setImmediate();
    const offset = Math.max(0, start - REACH);
    const window = text.slice(offset, start + WINDOW + REACH);
    const here: FoundData[] = [];
    for (const kind of personalDataKinds) {
      if (!kinds.includes(kind)) continue;
      for (const place of placesOf(window, finders[kind])) {
        const [from, to] = [place.from + offset, place.to + offset];
        // The other windows have what begins in them.
        if (from < start || from >= start + WINDOW) continue;
        if (here.every((other) => from >= other.to || to <= other.from)) here.push({ kind, from, to });
      }
    }
    found.push(...here.sort((one, other) => one.from - other.from));
  }
  return found.filter(({ from }, index) => index === 0 || from >= (found[index - 1]?.to ?? 0));
}

function* placesOf(
  text: string,
  { pattern, isOne }: Finder,
): Generator<{ readonly from: number; readonly to: number }> {
  const search = new RegExp(pattern.source, pattern.flags);
  for (let match = search.exec(text); match; match = search.exec(text)) {
    const [run] = match;
    const from = match.index;
    // Another number may follow behind a separator, so shorter beginnings of the run are tried too.
    const ends = [run.length, ...[...run.matchAll(/[ -]/g)].map(({ index }) => index).toReversed()];
    const length = ends.find((end) => isOne(run.slice(0, end)));
    if (length !== undefined) yield { from, to: from + length };
    // What follows the first separator of a run that was none may begin one itself.
    search.lastIndex = from + (length ?? Math.max(1, ends.at(-1) ?? run.length));
  }
}

/** The groups in which numbers of cards are written. */
const isGroupedCard = /^(?:\d{13,19}|\d{4}([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{3})?|\d{4}([ -])\d{6}\2\d{4,5})$/;

/** The checksum of payment cards. */
function isLuhn(digits: string): boolean {
  if (digits.length < 13 || digits.length > 19 || /^(\d)\1*$/.test(digits)) return false;
  const sum = Array.from(digits, Number)
    .toReversed()
    .reduce((total, digit, index) => {
      const value = digit * (index % 2 === 0 ? 1 : 2);
      return total + (value > 9 ? value - 9 : value);
    }, 0);
  return sum % 10 === 0;
}

/** The checksum of IBANs: the number modulo 97 is 1, with letters as two digits and the first four characters at the end. */
function isIban(iban: string): boolean {
  if (iban.length < 15 || iban.length > 34) return false;
  let rest = 0;
  for (const character of iban.slice(4) + iban.slice(0, 4)) {
    const value = Number.parseInt(character, 36);
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97;
  }
  return rest === 1;
}

/** Numbers that begin as those of telephones do; not dates. */
function isPhone(found: string): boolean {
  const { length } = digitsOf(found);
  if (length < 8 || length > 15 || /^000|^0?\d[./]\d\d?[./]\d{4}/.test(found)) return false;
  return /^(?:\+|\(?0|\(\d{3}\))/.test(found) || /^\d{3}[ .-]\d{3}[ .-]\d{4}$/.test(found);
}
