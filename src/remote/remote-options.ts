import {
  anyRule,
  type OptionsSchema,
  flagRule,
  functionRule,
  oneOfRule,
  optionsOf,
  wholeNumberRule,
} from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { RunContext } from "../tools/index.ts";

/** The headers of requests to a remote agent; a text is a bearer token. */
export type RemoteAuth = string | Readonly<Record<string, string>>;

/** Tokens and dollars, as a remote agent tells them. */
export interface RemoteUsage {
  /** Tokens of its prompts. */
  readonly inputTokens: number;
  /** Tokens of its answers. */
  readonly outputTokens: number;
  /** In dollars; absent if the remote agent does not tell it. */
  readonly cost?: number | undefined;
}

/** An ended task, as `usage` gets it: with these fields of the protocol, and its others. */
export interface RemoteTask {
  /** Id of the task, as the remote agent gave it. */
  readonly id: string;
  /** Id of the context that the task belongs to. */
  readonly contextId: string;
  /** What the remote agent added; `undefined` if it added nothing. */
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
}

/** What `remoteAgent()` takes. */
export interface RemoteAgentOptions {
  /** The tool's name for the model: letters, digits, `_` and `-`; 1 to 64 characters. */
  readonly name: string;
  /** For the model: what the agent is good for. Default: that it is a remote agent of this name. */
  readonly description?: string | undefined;
  /**
   * Address of its card, or of the agent, below which its card is at `.well-known/agent-card.json`. Default: none; one
   * of `url` and `card` is needed.
   */
  readonly url?: string | undefined;
  /** Its card, in place of `url`: it is taken as it is, and the agent is where it says. Default: none. */
  readonly card?: unknown;
  /** Sent with every request. A function is called before each of them, with the run of the call. Default: nothing. */
  readonly auth?: RemoteAuth | ((run: RunContext) => RemoteAuth | Promise<RemoteAuth>) | undefined;
  /** Further origins (`https://host:port`) at which the card of `url` may place the agent. Default: none. */
  readonly allowedOrigins?: readonly string[] | undefined;
  /**
   * `agent`: all calls of one calling agent share a context, so that the remote agent knows what was said before. `call`:
   * each call has its own. `server`: the server gives each call its own; it then honours no message ids. Default `agent`.
   */
  readonly context?: "agent" | "call" | "server" | undefined;
  /**
   * Whether a message that is sent again finds the task that it has begun. Default: what the card says by the extension
   * `urn:troupe:a2a:message-keys:v1`, as servers of this package do.
   */
  readonly honoursMessageIds?: boolean | undefined;
  /** Milliseconds that it may work on a task, waits for people not counted; then the task is cancelled. Default 600,000. */
  readonly timeoutMs?: number | undefined;
  /** Bytes of one answer, streams included. Default 8,000,000. */
  readonly maxBytes?: number | undefined;
  /** What an ended task has used. Default: what servers of this package tell in the task's metadata. */
  readonly usage?: ((task: RemoteTask) => RemoteUsage | undefined) | undefined;
  /** Whether a person has to approve each call before it is sent. Default false. */
  readonly needsApproval?: boolean | undefined;
}

/** The checked options. Throws `InvalidInputError` with what is wrong. */
export function remoteOptionsOf(options: RemoteAgentOptions): RemoteAgentOptions {
  const given = optionsOf<RemoteAgentOptions>(options, "remoteAgent()", door);
  if ((given.url === undefined) === (given.card === undefined)) {
    throw new InvalidInputError(`remoteAgent("${given.name}"): give either url or card`);
  }
  return given;
}

const door: OptionsSchema<RemoteAgentOptions> = {
  rules: {
    name: anyRule,
    description: anyRule,
    url: addressRule,
    card: (value, where) => {
      if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
      throw new InvalidInputError(`${where} must be the card, an object`);
    },
    auth: (value, where) => {
      if (typeof value === "string" || typeof value === "function" || (typeof value === "object" && value !== null))
        return value;
      throw new InvalidInputError(`${where} must be a token, headers, or a function that gives one of them`);
    },
    allowedOrigins: (value, where) => {
      if (Array.isArray(value)) return value.map((one, index) => addressRule(one, `${where}[${index}]`));
      throw new InvalidInputError(`${where} must be a list of origins, such as ["https://agents.example.com"]`);
    },
    context: oneOfRule("agent", "call", "server"),
    honoursMessageIds: flagRule,
    timeoutMs: wholeNumberRule(1, 2_000_000_000),
    maxBytes: wholeNumberRule(1_000, 100_000_000),
    usage: functionRule,
    needsApproval: flagRule,
  },
  needed: ["name"],
  instead: { agentCard: "card", headers: "auth", token: "auth", timeout: "timeoutMs", contextId: "context" },
};

function addressRule(value: unknown, where: string): string {
  const url = typeof value === "string" && URL.canParse(value) ? new URL(value) : undefined;
  if (url && (url.protocol === "https:" || url.protocol === "http:") && url.username === "" && url.password === "") {
    return String(value);
  }
  // It may hold a password.
  throw new InvalidInputError(
    `${where} must be an address such as "https://agents.example.com/desk", without a password`,
  );
}
