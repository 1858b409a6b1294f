import { stem } from "porter2";

/** Words without a subject: articles, pronouns, auxiliaries, question words, polite and filler words. */
const stopWords: ReadonlySet<string> = new Set(
  (
    "a about above after again against all also am an and any anybody anyone anything are as at away be because been before being below between both but " +
    "by can cannot could did do does doing done down during each either else even ever every for from further give given goes going had has have having he " +
    "her here hers him his how however i if in instead into is it its itself just know let like look many may me might mine more most much must my myself " +
    "neither never no nor not now of off often on once one only onto or other our ours out over own please quite rather really same shall she should show " +
    "since so some somebody someone something still such sure tell than thank thanks that the their theirs them then there these they this those though " +
    "through thus to too toward under until up upon us very was way ways we were what when where whether which while who whom whose why will with within " +
    "without would yet you your yours yourself according answer describe explain question say says e.g i.e etc"
  ).split(" "),
);

/** Words that say little beside others. */
const weakWords =
  /^(?:actually|become|behave|case|detail|differ|document|exampl|file|folder|get|happen|help|kind|make|mean|project|possibl|thing|tri|typic|use|usual|want|work)$/;

/** Forms that no suffix rule finds, behind the word that they are forms of. */
const irregularForms: ReadonlyMap<string, string> = new Map(
  (
    "be is are am was were been being, have has had having, do does did done, begin began begun, break broke broken, bring brought, build built, buy bought, " +
    "choose chose chosen, come came, fall fell fallen, find found, give gave given, go went gone, hold held, keep kept, know knew known, lead led, leave left, " +
    "lose lost, make made, meet met, pay paid payment payments, run ran, say said, see saw seen, sell sold, send sent, speak spoke spoken, spend spent, " +
    "take took taken, tell told, think thought, write wrote written, child children, person people, man men, woman women, index indices, create creation creations"
  )
    .split(", ")
    .flatMap((forms) => forms.split(" ").map((form, _, [base = form]): [string, string] => [form, base])),
);

interface Word {
  /** As written. */
  readonly text: string;
  /** Stems of the word and of the parts of a compound (`maxTokens`, `run-away`, `z.infer`). */
  readonly stems: readonly [whole: string, ...parts: string[]];
}

/** The English stem of a word, so that `approve`, `approves` and `approval` meet. Identifiers and other languages are left as they are. */
export function stemOf(word: string): string {
  const lower = word.toLowerCase();
  const isPlain = /^[a-z-]+$/.test(lower) && !/[a-z][A-Z]/.test(word);
  return isPlain ? stem(irregularForms.get(lower) ?? lower) : lower;
}

/** The words of texts, which repeat them. Bounded; only for speed. */
const knownWords = new Map<string, Word>();

/** The words of a text in order, stop words included. */
function wordsOf(text: string): Word[] {
  const plain = text.replaceAll(/(?<=[a-z])n['’]t\b/gi, " not");
  return Array.from(plain.matchAll(/[\p{L}\p{N}_$]+(?:[.-][\p{L}\p{N}_$]+)*/gu), ([word]) => {
    const known = knownWords.get(word);
    if (known !== undefined) return known;
    const parts = word.replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, "$1 $2").split(/[\s._$-]+/u);
    const read: Word = { text: word, stems: [stemOf(word), ...(parts.length > 1 ? parts.map(stemOf) : [])] };
    if (knownWords.size >= 20_000) knownWords.clear();
    knownWords.set(word, read);
    return read;
  });
}

/** The stems in a text, those of the parts of compounds too. */
export function stemsIn(text: string): string[] {
  return wordsOf(text).flatMap(({ stems }) => stems);
}

/** Neighbouring words of a text, in either order, so that "is the box" and "the box is" meet. */
export function pairsIn(text: string): string[] {
  const words = wordsOf(text).filter((word) => !/^(?:an?|the)$/i.test(word.text));
  return words.slice(1).map(({ stems: [one] }, index) => {
    const other = words[index]?.stems[0] ?? "";
    return one < other ? `${one} ${other}` : `${other} ${one}`;
  });
}

/** The stems of the words of a text that carry its subject, each once, with the word as written. */
export function termsOf(text: string): ReadonlyMap<string, string> {
  const words = wordsOf(text).filter((word) => !stopWords.has(word.text.toLowerCase()) && !/^\p{L}$/u.test(word.text));
  const strong = words.filter(({ stems: [stem] }) => !weakWords.test(stem));
  return new Map((strong.length > 0 ? strong : words).map((word) => [word.stems[0], word.text]));
}
