const maxPatternLength = 200;

/**
 * Whether a path fits a pattern: `*` and `?` within a name, `**` over folders (`docs/**`, `*.md`). A pattern without a
 * slash is tried on the file's name; one without a wildcard fits every path that contains it. Letter case is ignored.
 * Matched without a regular expression, so that no pattern can take long.
 */
export function fitsPattern(path: string, pattern: string): boolean {
  const wanted = pattern.trim().slice(0, maxPatternLength).toLowerCase().replace(/^\.\//, "");
  const given = path.toLowerCase();
  if (wanted === "" || wanted === "**") return true;
  if (!/[*?]/.test(wanted)) return given.includes(wanted);
  const names = given.split("/");
  if (!wanted.includes("/")) return fitsName(names.at(-1) ?? "", wanted);
  return fitsSequence(names, wanted.split("/"), fitsName, "**");
}

function fitsName(name: string, pattern: string): boolean {
  return fitsSequence(
    Array.from(name),
    Array.from(pattern),
    (character, wanted) => wanted === "?" || wanted === character,
    "*",
  );
}

/** Wildcard matching with one step back to the last `any`: time is at most the product of both lengths. */
function fitsSequence(
  items: readonly string[],
  pattern: readonly string[],
  fits: (item: string, wanted: string) => boolean,
  any: string,
): boolean {
  let item = 0;
  let place = 0;
  let retryItem = 0;
  let retryPlace = -1;
  while (item < items.length) {
    const wanted = pattern[place];
    if (wanted === any) {
      retryPlace = place;
      retryItem = item;
      place += 1;
    } else if (wanted !== undefined && fits(items[item] ?? "", wanted)) {
      item += 1;
      place += 1;
    } else if (retryPlace >= 0) {
      retryItem += 1;
      item = retryItem;
      place = retryPlace + 1;
    } else return false;
  }
  while (pattern[place] === any) place += 1;
  return place === pattern.length;
}
