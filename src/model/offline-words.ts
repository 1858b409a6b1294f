import { stem } from "porter2";

/** Words without a subject: articles, pronouns, auxiliaries, question words, polite and filler words. */
const stopWords: ReadonlySet<string> = new Set(
  (
    "a about above after again against all also am an and any anybody anyone anything are aren't as at away be because been before being below " +
    "between both but by can can't cannot could couldn't did didn't do does doesn't doing don't done down during each either else even ever every " +
    "for from further give given goes going had has hasn't have haven't having he her here hers him his how however i i'd i'll i'm i've if in " +
    "instead into is isn't it it's its itself just know let let's like look many may me might mine more most much must my myself neither never " +
    "no nor not now of off often on once one only onto or other our ours out over own please quite rather really same shall she should show " +
    "since so some somebody someone something still such sure tell than thank thanks that that's the their theirs them then there these they " +
    "this those though through thus to too toward under until up upon us very was wasn't way ways we were weren't what what's when where " +
    "whether which while who whom whose why will with within without won't would yet you your yours yourself " +
    "according answer describe explain question say says e.g i.e etc"
  ).split(" "),
);

/** Forms that no suffix rule finds. */
const irregularForms: ReadonlyMap<string, string> = new Map(
  (
    "spent:spend sent:send kept:keep held:hold found:find built:build lost:lose ran:run wrote:write written:write chose:choose chosen:choose " +
    "began:begin begun:begin broke:break broken:break brought:bring bought:buy caught:catch came:come drew:draw drawn:draw fell:fall fallen:fall " +
    "felt:feel gave:give went:go grew:grow grown:grow hidden:hide knew:know known:know laid:lay led:lead left:leave met:meet paid:pay " +
    "said:say saw:see seen:see sold:sell spoke:speak spoken:speak stood:stand stolen:steal stole:steal taken:take took:take taught:teach " +
    "thought:think thrown:throw threw:throw told:tell understood:understand won:win woke:wake woken:wake made:make dealt:deal " +
    "children:child people:person men:man women:woman indices:index matrices:matrix criteria:criterion creation:create creations:create payment:pay payments:pay"
  )
    .split(" ")
    .map((pair): [string, string] => {
      const [form = "", base = ""] = pair.split(":");
      return [form, base];
    }),
);

const wordPattern = /[\p{L}\p{N}_$]+(?:['’.-][\p{L}\p{N}_$]+)*/gu;

/** One word of a text, with the forms by which it is compared. */
interface Word {
  /** As written. */
  readonly text: string;
  /** Stem of the whole word, lower case. */
  readonly stem: string;
  /** Stems of the parts of a compound (`maxTokens`, `run-away`, `z.infer`); empty for a plain word. */
  readonly parts: readonly string[];
  /** Written as code is: `maxTokens`, `z.infer`. */
  readonly isCode: boolean;
}

export function isStopWord(lowerCaseWord: string): boolean {
  return stopWords.has(lowerCaseWord.replaceAll("’", "'"));
}

/** Code is compared whole: camelCase, a dot, an underscore or a digit inside. */
export function isIdentifier(word: string): boolean {
  return /[\p{Ll}\p{N}]\p{Lu}|[\p{L}\p{N}][._$]\p{L}|^[_$]|_/u.test(word);
}

/** The words of a text in order, stop words included. */
export function wordsOf(text: string): Word[] {
  const words: Word[] = [];
  for (const [found] of text.matchAll(wordPattern)) {
    const word = found.replace(/['’]s?$/u, "").replace(/['’]s$/u, "");
    if (word !== "") words.push(readWord(word));
  }
  return words;
}

/** Caches the forms of each word, since texts repeat their words. Bounded; only for speed. */
const readWords = new Map<string, Word>();
const mostReadWords = 20_000;

function readWord(text: string): Word {
  const known = readWords.get(text);
  if (known !== undefined) return known;
  const word: Word = { text, stem: stemOf(text), parts: partsOf(text), isCode: isIdentifier(text) };
  if (readWords.size >= mostReadWords) readWords.clear();
  if (text.length <= 64) readWords.set(text, word);
  return word;
}

function partsOf(word: string): readonly string[] {
  if (!/[._$-]|[\p{Ll}\p{N}]\p{Lu}/u.test(word)) return [];
  const parts = word.replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, "$1 $2").split(/[\s._$-]+/u);
  return parts.length < 2 ? [] : parts.filter((part) => part.length > 1).map(stemOf);
}

/** The English stem of a word, so that `approve`, `approves` and `approval` meet. Identifiers and other languages are left as they are. */
export function stemOf(word: string): string {
  const lower = word.toLowerCase().replaceAll("’", "'");
  const regular = irregularForms.get(lower) ?? lower;
  return isIdentifier(word) || !/^[a-z'-]+$/.test(lower) ? regular : stem(regular);
}
