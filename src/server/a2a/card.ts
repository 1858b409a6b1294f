import { createHash } from "node:crypto";
import type { AgentDefinition } from "../../agents/index.ts";
import { MESSAGE_KEYS } from "./message-keys.ts";
import { EXTENSION } from "./read-message.ts";

/** A capability of an agent, as its card lists it. */
export interface A2aSkill {
  /** Unique among the skills of the agent. */
  readonly id: string;
  /** Name for people. */
  readonly name: string;
  /** What the skill does, for people and for other agents. */
  readonly description: string;
  /** Keywords by which clients find it. Default: none. */
  readonly tags?: readonly string[] | undefined;
  /** Messages that a user might send. */
  readonly examples?: readonly string[] | undefined;
}

/** An agent of the A2A surface. */
export interface A2aServed {
  /** Must be a definition of the runtime. */
  readonly definition: AgentDefinition;
  /** Version of the agent, for its clients. Default `1.0.0`. */
  readonly version?: string | undefined;
  /** What it does, for people and for other agents. Default: its name. */
  readonly description?: string | null | undefined;
  /** Address of a page about the agent. Default: none. */
  readonly documentationUrl?: string | undefined;
  /** Default: one skill with the agent's name and description. */
  readonly skills?: readonly A2aSkill[] | undefined;
}

const inputModes = ["text/plain", "application/json", "image/png", "image/jpeg", "image/webp", "image/gif"];
const outputModes = ["text/plain", "application/json"];

export interface CardLocation {
  readonly url: string;
  /** Whether the server sends push notifications. */
  readonly pushNotifications: boolean;
}

/**
 * The card of an agent whose routes are at `url`. The card is of version 1.0, with the additional fields by which
 * clients of version 0.3 find their interface.
 */
export function cardOf(served: A2aServed, { url, pushNotifications }: CardLocation): object {
  const { definition, version = "1.0.0", documentationUrl } = served;
  const description = served.description ?? definition.name;
  return {
    name: definition.name,
    description,
    version,
    ...(documentationUrl === undefined ? {} : { documentationUrl }),
    supportedInterfaces: [
      { url, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
      { url, protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
      { url, protocolBinding: "JSONRPC", protocolVersion: "0.3" },
    ],
    url,
    preferredTransport: "JSONRPC",
    protocolVersion: "0.3.0",
    capabilities: {
      streaming: true,
      pushNotifications,
      extendedAgentCard: true,
      extensions: [
        { uri: EXTENSION, description: "Decides requests for approval by data parts.", required: false },
        { uri: MESSAGE_KEYS, description: "A repeated message returns its existing task.", required: false },
      ],
    },
    securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: "Bearer" } } },
    securityRequirements: [{ schemes: { bearer: { list: [] } } }],
    defaultInputModes: inputModes,
    defaultOutputModes: outputModes,
    skills: (served.skills ?? [{ id: definition.name, name: definition.name, description }]).map(skillJson),
  };
}

/** The card for authenticated callers, with an additional skill for each tool. */
export function extendedCardOf(served: A2aServed, place: CardLocation): object {
  const card = cardOf(served, place) as { readonly skills: readonly object[] };
  const tools = served.definition.tools.definitions().map(({ name, description }) => ({
    id: `tool:${name}`,
    name,
    description,
    tags: ["tool"],
  }));
  return { ...card, skills: [...card.skills, ...tools.map(skillJson)] };
}

function skillJson({ id, name, description, tags = [], examples = [] }: A2aSkill): object {
  return { id, name, description, tags, ...(examples.length === 0 ? {} : { examples }) };
}

const CARD_SECONDS = 300;

/** Answers a request for a card; 304 if the client has it. `isPublic`: proxies may cache it too. */
export function cardResponse(card: object, request: Request, isPublic: boolean): Response {
  const body = JSON.stringify(card);
  const etag = `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`;
  const headers = { etag, "cache-control": `${isPublic ? "public" : "private"}, max-age=${CARD_SECONDS}` };
  const known = (request.headers.get("if-none-match") ?? "").split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  if (known.includes(etag) || known.includes("*")) return new Response(null, { status: 304, headers });
  return new Response(body, { headers: { ...headers, "content-type": "application/json" } });
}
