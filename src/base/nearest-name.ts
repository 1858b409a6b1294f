/** Names that are known, those closest to `name` first; of equally close ones the one that was given first. */
export function nearestNames(name: string, known: readonly string[]): readonly { name: string; distance: number }[] {
  const meant = name.slice(0, longestName).toLowerCase();
  return known
    .map((candidate) => ({ name: candidate, distance: editDistance(meant, candidate.toLowerCase()) }))
    .toSorted((one, other) => one.distance - other.distance);
}

/** The known name that somebody who wrote `name` most likely meant: at most two letters off, case aside; else undefined. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const [best] = nearestNames(name, known);
  return best && best.distance <= Math.min(2, Math.floor(name.length / 2)) ? best.name : undefined;
}

/** Longer names are compared by their beginning: what somebody else wrote must not cost more than a moment. */
const longestName = 65;

/** Levenshtein distance. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= to.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
