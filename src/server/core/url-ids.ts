/**
 * Ids in URLs. A `#` would start the fragment, so a turn is `desk-7.3` and its request `desk-7.3:2:0:1`: the last dot
 * before the first colon separates agent and number. Agents' ids may contain dots themselves.
 */
export function urlIdOf(id: string): string {
  return id.replace("#", ".");
}

/** The inverse of `urlIdOf`, for turns, calls and requests. Other text is returned unchanged; no object has that id. */
export function idOfUrl(text: string): string {
  const colon = text.indexOf(":");
  const turn = colon < 0 ? text : text.slice(0, colon);
  const point = turn.lastIndexOf(".");
  if (point < 0 || !/^[1-9]\d{0,14}$/.test(turn.slice(point + 1))) return text;
  return `${turn.slice(0, point)}#${text.slice(point + 1)}`;
}

/** Encodes an id for other protocols: `prefix_` and base64url. */
export function sealedId(prefix: string, id: string): string {
  return `${prefix}_${Buffer.from(id).toString("base64url")}`;
}

/** The inverse of `sealedId`; `undefined` for other text. */
export function openedId(prefix: string, text: string): string | undefined {
  if (!text.startsWith(`${prefix}_`)) return undefined;
  const id = Buffer.from(text.slice(prefix.length + 1), "base64url").toString();
  return sealedId(prefix, id) === text ? id : undefined;
}
