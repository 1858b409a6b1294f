/**
 * The version of the protocol that a client speaks, as major and minor number: the header `A2A-Version`, or the parameter
 * of that name; without one it is 0.3, as the specification says.
 */
export function requestedVersion(request: Request): string {
  const query = [...new URL(request.url).searchParams].find(([name]) => name.toLowerCase() === "a2a-version");
  const given = (request.headers.get("a2a-version") ?? query?.[1] ?? "").trim();
  const [, version] = /^(\d+\.\d+)(?:\.\d+)?$/.exec(given) ?? [];
  return given === "" ? "0.3" : (version ?? given);
}
