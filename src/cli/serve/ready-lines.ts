import { agentIdOfName, type TealServed } from "../../server/index.ts";
import { developer, type ServeAuth, tokenVariable } from "./serve-auth.ts";
import type { LoadedSurfaces } from "./surfaces.ts";

interface Ready {
  readonly url: string;
  /** The line about the page. */
  readonly page: string;
  readonly surfaces: Pick<LoadedSurfaces, "served" | "leftOut">;
  readonly access: Pick<ServeAuth, "way" | "token" | "isGiven">;
  /** Description of the store. */
  readonly place: string;
  readonly tenant: string;
  /** Input of the printed example command. */
  readonly input: string;
  /** Whether an agent comes from a YAML file of Teal Agents. */
  readonly isYaml: boolean;
}

/** Conversation name in the printed example command. */
const tryName = "first";

/**
 * The lines that a listening server prints: its agents, addresses and access, and an example command that works
 * unchanged.
 */
export function readyLines(served: readonly TealServed[], ready: Ready): readonly string[] {
  const { url, page, surfaces, place, access } = ready;
  const [first] = served;
  const tryIt = first === undefined || access.way === "entra" ? undefined : tryLine(first, ready);
  const ofSurfaces = surfaces.served.flatMap((surface) =>
    surface.addresses(url, { teal: served }).map((address) => `${surface.title}: ${address}`),
  );
  return [
    `Serving ${served.map(({ definition }) => definition.name).join(", ")} at ${url}; agents are stored in ${place}.`,
    page,
    ...[...ofSurfaces, ...surfaces.leftOut].map((line) => `  ${line}`),
    `  Health: ${url}/healthz, ${url}/readyz, ${url}/metrics`,
    accessLine(access),
    ...(tryIt === undefined ? [] : ["Try:", `  ${tryIt}`]),
  ];
}

function accessLine({ way, token, isGiven }: Ready["access"]): string {
  if (way === "none") return "Token: none, all programs on this machine may call";
  if (way === "entra") return "Token: access tokens of Entra ID, as Authorization: Bearer …";
  return `Token: ${isGiven ? `the one in ${tokenVariable}` : token}`;
}

/**
 * An example command on one line for a POSIX shell: a task for an agent of a YAML file, else an agent and the stream of
 * its turn, else a task of A2A, a completion or a call of its tool.
 */
function tryLine({ definition, version }: TealServed, ready: Ready): string | undefined {
  const { url, access, tenant, input, isYaml, surfaces } = ready;
  const isServed = (name: string): boolean => surfaces.served.some((surface) => surface.name === name);
  const token = access.isGiven ? `$${tokenVariable}` : access.token;
  const bearer = access.way === "none" ? "" : ` -H "authorization: Bearer ${token}"`;
  const post = `curl -sS${bearer} -H 'content-type: application/json'`;
  if (isServed("teal") && (isYaml || !isServed("api"))) {
    return `${post} ${url}/${definition.name}/${version} -d ${word({ items: [{ content: input }] })}`;
  }
  if (!isServed("api") && isServed("a2a")) {
    const message = { messageId: "1", contextId: tryName, role: "ROLE_USER", parts: [{ text: input }] };
    return `${post} -H 'a2a-version: 1.0' ${url}/a2a/${definition.name}/message:send -d ${word({ message })}`;
  }
  if (!isServed("api") && isServed("openai")) {
    const body = { model: definition.name, messages: [{ role: "user", content: input }] };
    return `${post} ${url}/v1/chat/completions -d ${word(body)}`;
  }
  if (!isServed("api") && isServed("mcp")) {
    const params = { name: definition.name, arguments: { input } };
    const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params };
    return `${post} -H 'accept: application/json, text/event-stream' ${url}/mcp -d ${word(message)}`;
  }
  if (!isServed("api")) return undefined;
  const agentId = agentIdOfName({ tenant, ownerId: developer, definition: definition.name }, tryName);
  const create = `${post} ${url}/api/agents -d ${word({ definition: definition.name, key: tryName })}`;
  const turn = `${post} -N -H 'accept: text/event-stream' ${url}/api/agents/${agentId}/turns -d ${word({ input })}`;
  return `${create} && echo && ${turn}`;
}

/** JSON as an argument for a POSIX shell. */
function word(value: unknown): string {
  return `'${JSON.stringify(value).replaceAll("'", `'\\''`)}'`;
}
