/*
 * What secrets look like in texts that somebody else wrote. Every pattern is linear in the text: a quantifier without a
 * bound is followed by nothing that could fail, or is entered once per run of its characters (lookbehind); all others
 * are bounded. Each keeps what tells a reader which secret it was, and names the rest `secret`.
 */

/** A key in front of a value: `password=`, `"password": `, `\"password\":` within JSON. */
function keyed(names: string, signs: string): string {
  return `(?:${names})\\\\{0,3}["']?\\s{0,4}${signs}\\s{0,4}`;
}

const passwordNames =
  "password|passwd|passphrase|pwd|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|client[_-]?secret|(?:access|auth|refresh|session)[_-]?token|(?<![a-z])id[_-]?token";
/** Words of everyday language: a secret only with an equals sign, or as a quoted key. */
const everydayNames = "secret|token|credentials?";
const headerNames = "(?:proxy-)?authorization|x-api-key|api-key|x-auth-token|(?:set-)?cookie";

const quoted = `(?<mark>\\\\{0,3}["'])(?!\\[redacted\\])(?<secret>(?:(?!\\k<mark>)[^\\n])+)`;
const unquoted = `(?!\\[redacted\\])(?<secret>[^\\s"'&,;)}\\]\\\\]+)`;

/** Built-in shapes of secrets; for texts, not for structured values. */
export const secretPatterns: readonly RegExp[] = [
  // Bearer tokens: with a digit, or too long for a word that follows "bearer" in a sentence.
  /\b(?:bearer|basic)\s{1,8}(?=[^\d\s]{0,64}\d|\S{20})(?<secret>[\w.~+/=-]{6,})/i,
  // Keys with the prefix of their provider.
  /(?<![\w-])sk-(?=[a-z_-]{0,64}\d|[\w-]{20})[\w-]{8,}/i,
  /(?<![\w-])(?:[sr]k_(?:live|test)_|gh[opusr]_|github_pat_|glpat-|xox[abeprs]-|AKIA|ASIA|AIza)[\w-]{10,}/,
  // JSON web tokens.
  /(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/,
  // User and password in a URL.
  /:\/\/(?<secret>[^\s/@:"'<>]{0,256}:[^\s/"'<>]{1,512})@/,
  // Header lines hold more than one word; the rest of the line goes.
  new RegExp(
    `${keyed(headerNames, "[:=]")}\\\\{0,3}["']?(?![\\s"'\\\\]{0,8}\\[redacted\\])(?<secret>[^"'\\r\\n]+)`,
    "i",
  ),
  new RegExp(keyed(passwordNames, "[:=]") + quoted, "i"),
  new RegExp(keyed(passwordNames, "[:=]") + unquoted, "i"),
  new RegExp(`(?<![a-z])${keyed(everydayNames, "=")}${unquoted}`, "i"),
  new RegExp(`(?<key>["'])(?:${everydayNames})\\\\{0,3}\\k<key>\\s{0,4}:\\s{0,4}${quoted}`, "i"),
  // Private keys, to their end line or to whatever cut them off.
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?<secret>[^-]+)/,
];

const secretName =
  /(?:password|passwd|passphrase|^pwd|secret|token|apikey|accesskey|secretkey|privatekey|credentials?|authorization|cookie)$/;

/** Whether what stands under this name of a structured value is a secret: `password`, `dbPassword`, `API_KEY`, `x-api-key`. */
export function isSecretName(name: string): boolean {
  return name.length <= 200 && secretName.test(name.toLowerCase().replaceAll(/[^a-z]/g, ""));
}
