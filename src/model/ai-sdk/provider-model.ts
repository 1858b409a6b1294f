import type { JsonObject, ProviderOptions, ReasoningEffort } from "../../state/index.ts";

/*
 * The structure of `LanguageModelV3` and `LanguageModelV4` of `@ai-sdk/provider`, as far as it is used here: the published types name
 * nothing of that package, so that a program needs only the provider that it uses.
 */

/** A language model of the AI SDK (specification `v3` or `v4`): `anthropic("claude-sonnet-4-5")`, `google("gemini-2.5-pro")`, … */
export interface AiSdkLanguageModel {
  /** `v3` since AI SDK 6, `v4` since AI SDK 7. */
  readonly specificationVersion: "v3" | "v4";
  /** The provider and its API, for instance `anthropic.messages`. */
  readonly provider: string;
  /** The provider's name of the model. */
  readonly modelId: string;
  /** URLs that the provider fetches itself, by media type. */
  readonly supportedUrls: PromiseLike<Record<string, RegExp[]>> | Record<string, RegExp[]>;
  /** Sends one call and resolves with the parts of its answer. */
  doStream(options: never): PromiseLike<{ readonly stream: ReadableStream<unknown> }>;
}

interface WithOptions {
  readonly providerOptions?: ProviderOptions | undefined;
}

export interface TextPart extends WithOptions {
  readonly type: "text";
  readonly text: string;
}

export interface FilePart {
  readonly type: "file";
  readonly mediaType: string;
  readonly filename?: string;
  /** `v3` takes the value itself, `v4` an object that names its kind. */
  readonly data:
    | string
    | URL
    | { readonly type: "data"; readonly data: string }
    | { readonly type: "url"; readonly url: URL };
}

export interface ReasoningPart extends WithOptions {
  readonly type: "reasoning";
  readonly text: string;
}

export interface ToolCallPart extends WithOptions {
  readonly type: "tool-call";
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
}

export interface ToolResultPart {
  readonly type: "tool-result";
  readonly toolCallId: string;
  readonly toolName: string;
  readonly output:
    | { readonly type: "text" | "error-text"; readonly value: string }
    | { readonly type: "content"; readonly value: readonly (TextPart | FilePart | ResultPartV3)[] };
}

/** An image or a file in a tool result of `v3`; `v4` has parts of type `file` there too. */
export type ResultPartV3 =
  | { readonly type: "image-data" | "file-data"; readonly data: string; readonly mediaType: string }
  | { readonly type: "image-url" | "file-url"; readonly url: string };

export type ProviderMessage = WithOptions &
  (
    | { readonly role: "system"; readonly content: string }
    | { readonly role: "user"; readonly content: readonly (TextPart | FilePart)[] }
    | { readonly role: "assistant"; readonly content: readonly (TextPart | ReasoningPart | ToolCallPart)[] }
    | { readonly role: "tool"; readonly content: readonly ToolResultPart[] }
  );

/** What `doStream` receives. */
export interface ProviderCall {
  readonly prompt: readonly ProviderMessage[];
  readonly abortSignal: AbortSignal;
  readonly maxOutputTokens?: number;
  readonly temperature?: number;
  readonly responseFormat?: { readonly type: "json"; readonly schema?: JsonObject; readonly name?: string };
  readonly tools?: readonly {
    readonly type: "function";
    readonly name: string;
    readonly description: string;
    readonly inputSchema: JsonObject;
    readonly providerOptions?: ProviderOptions;
  }[];
  readonly toolChoice?:
    | { readonly type: "auto" | "none" | "required" }
    | { readonly type: "tool"; readonly toolName: string };
  readonly stopSequences?: readonly string[];
  /** Only `v4` has it. */
  readonly reasoning?: ReasoningEffort;
  readonly providerOptions?: ProviderOptions;
}

/** The call of a model as it really is; its published type differs between the specifications. */
export function streamOf(
  model: AiSdkLanguageModel,
  call: ProviderCall,
): PromiseLike<{ readonly stream: ReadableStream<unknown> }> {
  return model.doStream(call as never);
}
