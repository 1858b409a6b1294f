import { agentIdOfName } from "../../server/index.ts";
import type { Served } from "../commands/serve.ts";
import type { StorePlace } from "../job/store-place.ts";
import { developer, type ServedAuth, tokenVariable } from "./auth-of.ts";

interface Ready {
  readonly url: string;
  readonly served: Served;
  readonly auth: ServedAuth;
  readonly place: Pick<StorePlace, "name">;
  readonly on: "here" | "workers";
  readonly tenant: string;
  readonly input?: string | undefined;
}

/** The name of the conversation that the printed command line opens. */
const tryName = "first";

/** The lines that a server prints when it listens: what it serves, where, for whom, and a command line to try. */
export function readyLines({ url, served, auth, place, on, input, tenant }: Ready): string[] {
  const names = served.agents.map(({ name }) => name).join(", ");
  const lines = [
    `Serving ${names}; kept in ${place.name}${on === "workers" ? "; turns run on workers" : ""}`,
    `  API      ${url}/api   (its pages: ${url}/api/docs, its document: ${url}/api/openapi.json)`,
    ...served.teal.map(({ name, version }) => `  Teal     ${url}/${name}/${version}`),
    `  Health   ${url}/healthz, ${url}/readyz, ${url}/metrics`,
    ...authLines(auth),
  ];
  const [first] = served.agents;
  if (first === undefined || auth.kind === "entra") return lines;
  return [...lines, "Try it:", `  ${tryLine({ url, auth, tenant, name: first.name, input: input ?? "Hello!" })}`];
}

function authLines({ kind, shownToken }: ServedAuth): string[] {
  if (kind === "none") return ["  Access   everybody on this machine, without a token"];
  if (kind === "entra") return ["  Access   tokens of Entra ID, as Authorization: Bearer"];
  return [`  Token    ${shownToken ?? `the one in ${tokenVariable}`}`];
}

interface TryOptions {
  readonly url: string;
  readonly auth: ServedAuth;
  readonly tenant: string;
  readonly name: string;
  readonly input: string;
}

/** One line for a POSIX shell: creates the agent, then streams a turn of it. */
function tryLine({ url, auth, tenant, name, input }: TryOptions): string {
  const agentId = agentIdOfName({ tenant, ownerId: developer, definition: name }, tryName);
  const token = auth.shownToken ?? `$${tokenVariable}`;
  const bearer = auth.kind === "none" ? "" : ` -H "authorization: Bearer ${token}"`;
  const post = `curl -sSN${bearer} -H "content-type: application/json"`;
  const create = `${post} ${url}/api/agents -d ${word(JSON.stringify({ definition: name, key: tryName }))}`;
  const turn = `${post} -H "accept: text/event-stream" ${url}/api/agents/${agentId}/turns -d ${word(JSON.stringify({ input }))}`;
  return `${create} && echo && ${turn}`;
}

/** Text as a POSIX shell takes it. */
function word(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
