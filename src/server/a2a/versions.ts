/**
 * The client's protocol version as `major.minor`, from the header or query parameter `A2A-Version`. Default 0.3, as the
 * specification requires.
 */
export function requestedVersion(request: Request): string {
  const query = [...new URL(request.url).searchParams].find(([name]) => name.toLowerCase() === "a2a-version");
  const given = (request.headers.get("a2a-version") ?? query?.[1] ?? "").trim();
  const [, version] = /^(\d+\.\d+)(?:\.\d+)?$/.exec(given) ?? [];
  return given === "" ? "0.3" : (version ?? given);
}
