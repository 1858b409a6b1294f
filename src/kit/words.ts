/** Words without case and accents, in the order of the text. Scripts that do not separate words are split by the dictionary of ICU. */
export function wordsOf(text: string): readonly string[] {
  const plain = text.normalize("NFKD").replaceAll(/\p{M}/gu, "").toLowerCase();
  const words: string[] = [];
  for (const { segment, isWordLike } of segmenter.segment(plain)) {
    // What remains between letters and digits, such as the dot of "a.b", separates words too.
    if (isWordLike === true) words.push(...(segment.match(/[\p{L}\p{N}]+/gu) ?? []));
  }
  return words;
}

const segmenter = new Intl.Segmenter("en", { granularity: "word" });
