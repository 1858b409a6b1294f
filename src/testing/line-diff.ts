/** Lines around a change that are shown with it. */
const CONTEXT = 2;
/** Most lines of a diff. */
const MOST_LINES = 80;
/** Longest line that is shown in full, in characters. */
const LONGEST_LINE = 200;
/** Largest table for the exact comparison; larger texts are shown as removed and added completely. */
const LARGEST_TABLE = 4_000_000;

type Change = { readonly kind: " " | "-" | "+"; readonly text: string; readonly line: number };

/**
 * A unified diff of two texts, with `-` before lines that only the first has and `+` before lines that only the second has. Long lines are
 * cut around their first difference. `isSame` decides which lines are equal.
 */
export function lineDiff(
  expected: readonly string[],
  got: readonly string[],
  isSame: (one: string, other: string) => boolean,
): string {
  const changes = changesOf(expected, got, isSame);
  const shown = new Set<number>();
  for (const [index, { kind }] of changes.entries()) {
    if (kind === " ") continue;
    for (let near = index - CONTEXT; near <= index + CONTEXT; near += 1) shown.add(near);
  }
  const lines: string[] = [];
  let last = -1;
  for (const [index, change] of changes.entries()) {
    if (!shown.has(index)) continue;
    if (index > last + 1) lines.push(`@@ line ${change.line} @@`);
    last = index;
    lines.push(`${change.kind} ${shortened(changes, index)}`.trimEnd());
  }
  const left = lines.length - MOST_LINES;
  return [...lines.slice(0, MOST_LINES), ...(left > 0 ? [`… ${left} more lines`] : [])].join("\n");
}

function changesOf(
  expected: readonly string[],
  got: readonly string[],
  isSame: (one: string, other: string) => boolean,
): Change[] {
  const same = (one: number, other: number): boolean => isSame(expected[one] ?? "", got[other] ?? "");
  let start = 0;
  while (start < expected.length && start < got.length && same(start, start)) start += 1;
  let [endOfExpected, endOfGot] = [expected.length, got.length];
  while (endOfExpected > start && endOfGot > start && same(endOfExpected - 1, endOfGot - 1)) {
    endOfExpected -= 1;
    endOfGot -= 1;
  }
  const changes: Change[] = [];
  const kept = (index: number): void => void changes.push({ kind: " ", text: expected[index] ?? "", line: index + 1 });
  const removed = (index: number): void =>
    void changes.push({ kind: "-", text: expected[index] ?? "", line: index + 1 });
  const added = (index: number, line: number): void =>
    void changes.push({ kind: "+", text: got[index] ?? "", line: line + 1 });
  for (let index = 0; index < start; index += 1) kept(index);
  let [one, other] = [start, start];
  const [rows, columns] = [endOfExpected - start, endOfGot - start];
  if (rows * columns <= LARGEST_TABLE) {
    const lengths = commonLengths(rows, columns, (row, column) => same(start + row, start + column));
    const at = (row: number, column: number): number => lengths[row * (columns + 1) + column] ?? 0;
    while (one < endOfExpected && other < endOfGot) {
      const [row, column] = [one - start, other - start];
      if (same(one, other)) {
        kept(one);
        one += 1;
        other += 1;
      } else if (at(row + 1, column) >= at(row, column + 1)) {
        removed(one);
        one += 1;
      } else {
        added(other, one);
        other += 1;
      }
    }
  }
  for (; one < endOfExpected; one += 1) removed(one);
  for (; other < endOfGot; other += 1) added(other, one);
  for (let index = endOfExpected; index < expected.length; index += 1) kept(index);
  return changes;
}

/** Lengths of the longest common subsequences of the ends of both texts, row by row. */
function commonLengths(rows: number, columns: number, isSame: (row: number, column: number) => boolean): Uint32Array {
  const lengths = new Uint32Array((rows + 1) * (columns + 1));
  for (let row = rows - 1; row >= 0; row -= 1) {
    for (let column = columns - 1; column >= 0; column -= 1) {
      const at = row * (columns + 1) + column;
      const below = at + columns + 1;
      lengths[at] = isSame(row, column)
        ? (lengths[below + 1] ?? 0) + 1
        : Math.max(lengths[below] ?? 0, lengths[at + 1] ?? 0);
    }
  }
  return lengths;
}

/** A long line, cut around its first difference from the line that replaces it or was replaced by it. */
function shortened(changes: readonly Change[], index: number): string {
  const { kind, text } = changes[index] ?? { kind: " ", text: "" };
  if (text.length <= LONGEST_LINE) return text;
  const near = changes.slice(Math.max(0, index - MOST_LINES), index + MOST_LINES);
  const other = kind === " " ? undefined : near.find((change) => change.kind !== kind && change.kind !== " ");
  let common = 0;
  while (other && common < text.length && text[common] === other.text[common]) common += 1;
  const from = Math.max(0, common - 40);
  const cut = text.slice(from, from + LONGEST_LINE);
  return `${from > 0 ? "…" : ""}${cut}${from + LONGEST_LINE < text.length ? "…" : ""}`;
}
