/**
 * Control characters but for line breaks and tabs, marks of direction and width, and tags: terminals obey them, and people do not see
 * them. The joiners of scripts and emoji are not among them.
 */
const invisible = /(?![\n\r\t])[\p{Cc}\u061C\u200B\u200E\u200F\u2028-\u202E\u2060-\u206F\uFEFF\u{E0000}-\u{E007F}]/gu;

/** A foreign text without characters that hide its content. */
export function visible(text: string): string {
  return text.replaceAll(invisible, "");
}

/** A JSON text in which characters that hide its content are escapes such as `\u202e`. It stays JSON of the same value. */
export function visibleJson(json: string): string {
  return json.replaceAll(invisible, (character) =>
    Array.from({ length: character.length }, (_, unit) => escapeOf(character.charCodeAt(unit))).join(""),
  );
}

function escapeOf(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, "0")}`;
}
