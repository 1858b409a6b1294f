/**
 * Compiles a pattern of a model or a foreign schema with the `u` flag, as JSON Schema prescribes. Needless escapes, which this flag
 * forbids, are accepted; so are `(?i)`, `(?m)` and `(?s)` at the beginning and `(?P<name>`, as in other languages. Testing it may never
 * end: run it within a time limit. Throws `SyntaxError`.
 */
export function compilePattern(source: string): RegExp {
  const pattern = source
    .replace(/\\([^\p{L}\p{N}])/gu, (_escape, character: string) => `\\u{${character.codePointAt(0)?.toString(16)}}`)
    .replace(/(\\[dDsSwW])-(?=[^\]])/g, "$1\\u{2d}")
    .replaceAll("(?P<", "(?<")
    .replace(/^\(\?([ims]+)\)([^]*)$/, "(?$1:$2)");
  return new RegExp(pattern, "u");
}
