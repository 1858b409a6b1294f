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

/** Tokens and dollars, as reported by a remote agent. */
export interface RemoteUsage {
  /** Tokens of its prompts. */
  readonly inputTokens: number;
  /** Tokens of its answers. */
  readonly outputTokens: number;
  /** Cost in dollars; absent if the remote agent does not report it. */
  readonly cost?: number | undefined;
}

/** An ended task, the argument of `usage`: with these fields of the protocol, and its others. */
export interface RemoteTask {
  /** The remote agent's id of the task. */
  readonly id: string;
  /** Id of the context that the task belongs to. */
  readonly contextId: string;
  /** The remote agent's metadata, or `undefined`. */
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
}

/** Options of `remoteAgent()`. */
export interface RemoteAgentOptions {
  /** The tool's name for the model: letters, digits, `_` and `-`; 1 to 64 characters. */
  readonly name: string;
  /** Description for the model of what the agent is good for. Default: that it is a remote agent of this name. */
  readonly description?: string | undefined;
  /**
   * URL of its card, or of the agent, whose card is then below it at `.well-known/agent-card.json`. Default: none; one
   * of `url` and `card` is required.
   */
  readonly url?: string | undefined;
  /** Its card, instead of `url`. It is used unchanged and may name any address. Default: none. */
  readonly card?: unknown;
  /** Headers of every request. A function is called before each request, with the run of the call. Default: none. */
  readonly auth?: RemoteAuth | ((run: RunContext) => RemoteAuth | Promise<RemoteAuth>) | undefined;
  /** Further origins (`https://host:port`) where the card of `url` may locate the agent. Default: none. */
  readonly allowedOrigins?: readonly string[] | undefined;
  /**
   * `agent`: all calls of one calling agent share a context, so that the remote agent knows the earlier messages.
   * `call`: each call has its own. `server`: the server chooses a context for each call; message ids are then not
   * honoured. Default `agent`.
   */
  readonly context?: "agent" | "call" | "server" | undefined;
  /**
   * Whether a repeated message finds the task that it started. Default: whether the card lists the extension
   * `urn:troupe:a2a:message-keys:v1`, as those of this package's servers do.
   */
  readonly honoursMessageIds?: boolean | undefined;
  /**
   * Milliseconds that the agent may work on a task, without waits for people; then the task is cancelled. Default
   * 600,000.
   */
  readonly timeoutMs?: number | undefined;
  /** Maximum bytes of one answer, including streams. Default 8,000,000. */
  readonly maxBytes?: number | undefined;
  /**
   * Returns the usage of an ended task. Default: the usage that servers of this package put into the task's metadata.
   */
  readonly usage?: ((task: RemoteTask) => RemoteUsage | undefined) | undefined;
  /** Whether a person must approve each call before it is sent. Default false. */
  readonly needsApproval?: boolean | undefined;
}

/** Validates the options. Throws `InvalidInputError` that describes the problem. */
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
  // The address may contain a password.
  throw new InvalidInputError(`${where} must be a URL such as "https://agents.example.com/desk", without a password`);
}
