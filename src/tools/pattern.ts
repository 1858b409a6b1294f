/**
 * A pattern that a model or a foreign schema gave, with the `u` flag, which JSON Schema prescribes. Escapes that this flag forbids
 * because they are needless are accepted; so are `(?i)`, `(?m)` and `(?s)` at the beginning and `(?P<name>`, as in other languages. Its test may
 * take for ever: run it within a time limit. Throws `SyntaxError`.
 */
export function compilePattern(source: string): RegExp {
  const pattern = source
    .replace(/\\([^\p{L}\p{N}])/gu, (_escape, character: string) => `\\u{${character.codePointAt(0)?.toString(16)}}`)
    .replace(/(\\[dDsSwW])-(?=[^\]])/g, "$1\\u{2d}")
    .replaceAll("(?P<", "(?<")
    .replace(/^\(\?([ims]+)\)([^]*)$/, "(?$1:$2)");
  return new RegExp(pattern, "u");
}
