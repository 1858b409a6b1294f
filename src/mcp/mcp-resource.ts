import type { ContentPart } from "../state/index.ts";

/** Options of requests for resources and prompts. */
export interface McpRequestOptions {
  /** Whose connection and credentials are used. Default: those of no actor. */
  readonly actorId?: string | null | undefined;
  /** Ends the request. Default: none. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds for the request. Default 60,000. */
  readonly timeoutMs?: number | undefined;
}

/** A resource that a server lists. */
export interface McpResource {
  /** What `readResource()` takes. */
  readonly uri: string;
  /** The server's name for it; may be empty. */
  readonly name: string;
  /** A name for people. */
  readonly title?: string | undefined;
  /** What the server states about it, at most 8,000 characters. */
  readonly description?: string | undefined;
  /** For instance `text/plain`. */
  readonly mimeType?: string | undefined;
  /** Bytes. */
  readonly size?: number | undefined;
}

/** A pattern of the URIs of resources. */
export interface McpResourceTemplate {
  /** A URI with variables in braces, by RFC 6570. */
  readonly uriTemplate: string;
  /** The server's name for it; may be empty. */
  readonly name: string;
  /** A name for people. */
  readonly title?: string | undefined;
  /** What the server states about it, at most 8,000 characters. */
  readonly description?: string | undefined;
  /** The type of all resources of this pattern. */
  readonly mimeType?: string | undefined;
}

/** A prompt that a server lists. */
export interface McpPrompt {
  /** What `prompt()` takes. */
  readonly name: string;
  /** A name for people. */
  readonly title?: string | undefined;
  /** What the server states about it, at most 8,000 characters. */
  readonly description?: string | undefined;
  /** The arguments that `prompt()` takes for it. */
  readonly arguments: readonly {
    /** Name of the argument. */
    readonly name: string;
    /** What the server states about it. */
    readonly description?: string | undefined;
    /** Whether the prompt needs it. */
    readonly required: boolean;
  }[];
}

/** A prompt whose arguments are filled in. */
export interface McpPromptMessages {
  /** What the server states about the prompt. */
  readonly description?: string | undefined;
  /** The messages, oldest first. */
  readonly messages: readonly { readonly role: "user" | "assistant"; readonly content: readonly ContentPart[] }[];
}

/**
 * The resources and prompts of a server. All reject with `McpServerError` if the server cannot be reached, refuses or does not answer in
 * time, with `InvalidInputError` for invalid arguments, and with the reason of the caller's `signal`.
 */
export interface McpResources {
  /** All resources, at most 1,000; empty if the server has none. */
  resources(options?: McpRequestOptions): Promise<McpResource[]>;
  /** All patterns of URIs, at most 1,000; empty if the server has none. */
  resourceTemplates(options?: McpRequestOptions): Promise<McpResourceTemplate[]>;
  /** The contents of a resource: texts as text, images as images, everything else as files. For `executeTurn()` and messages. */
  readResource(uri: string, options?: McpRequestOptions): Promise<ContentPart[]>;
  /** All prompts, at most 1,000; empty if the server has none. */
  prompts(options?: McpRequestOptions): Promise<McpPrompt[]>;
  /** A prompt with its arguments filled in, as messages. */
  prompt(
    name: string,
    args?: Readonly<Record<string, string>>,
    options?: McpRequestOptions,
  ): Promise<McpPromptMessages>;
}
