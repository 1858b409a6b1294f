import { ModelError } from "../errors/index.ts";
import type { FilePart, ModelRequest, ModelResponse, ModelWarning, ResponseFormat } from "../state/index.ts";
import { FileForm, refusesFiles } from "./file-form.ts";
import { refusesImages, withoutToolImages } from "./images-refused.ts";
import type { ModelDelta } from "./language-model.ts";
import { OutputToolDeltas, withoutOutputTool, withOutputTool } from "./output-tool.ts";
import { RefusedReasoning, refusesReasoning } from "./reasoning-refused.ts";
import {
  askedFor,
  type KnownFormats,
  refusesForcedTool,
  refusesFormat,
  type StructuredOutput,
  structuredOutputs,
} from "./structured-output.ts";

type OnDelta = ((delta: ModelDelta) => void) | undefined;
type Send = (request: ModelRequest, onDelta: OnDelta) => Promise<ModelResponse>;

/** How a call is made. */
export interface FormedCall {
  /** The only strategy to ask for structured output, or `auto` for the first that is not known to be refused. */
  readonly structuredOutput: "auto" | StructuredOutput;
  /** What is known of the server and the model; read only for a request with a schema. */
  readonly known: () => KnownFormats | Promise<KnownFormats>;
  readonly onDelta: OnDelta;
  readonly send: Send;
}

/**
 * Repeats a call in another form if the server has refused the format of the answer, the images of tools, a file, or reasoning that it
 * wrote itself. A refusal has cost nothing, and what the server accepts is remembered.
 */
export class FormFallback {
  readonly #files: FileForm;
  #takesImages = true;
  readonly #reasoning = new RefusedReasoning();

  /** @param takes Whether the provider accepts a binary file. Default: it accepts none. */
  constructor(takes: (part: FilePart) => boolean = () => false) {
    this.#files = new FileForm(takes);
  }

  /** The request as it is sent, as far as that is known before a call: without images and files that the server does not accept. */
  prepared(request: ModelRequest): ModelRequest {
    return this.#files.formed(this.#takesImages ? request : withoutToolImages(request));
  }

  async call(request: ModelRequest, call: FormedCall): Promise<ModelResponse> {
    const { responseFormat } = request;
    if (responseFormat?.type !== "json_schema") return await this.#attempt(request, call, call.onDelta);
    const { structuredOutput } = call;
    const formats = await call.known();
    const refusals: Refusal[] = [];
    for (;;) {
      const next = structuredOutput === "auto" ? formats.formatFor(request) : structuredOutput;
      try {
        if (next !== "tool") return await this.#attempt(askedFor(request, next), call, call.onDelta);
        return await this.#askByTool(request, responseFormat, { call, formats });
      } catch (error) {
        if (!(error instanceof ModelError)) throw error;
        const isOfCaller = isForcedByCaller(request) && refusesForcedTool(error);
        if (isOfCaller || !refusesFormat(error, next))
          throw refusals.length === 0 ? error : withRefusals(error, refusals);
        if (structuredOutput !== "auto") throw refusedChoice(error, next);
        refusals.push({ format: next, message: error.message });
        formats.refused(request, next);
      }
    }
  }

  async #askByTool(
    request: ModelRequest,
    format: Extract<ResponseFormat, { type: "json_schema" }>,
    { call, formats }: { readonly call: FormedCall; readonly formats: KnownFormats },
  ): Promise<ModelResponse> {
    // Other calls are forbidden and this one cannot be forced.
    if (!formats.forcesTools && request.toolChoice === "none") {
      return await this.#attempt(askedFor(request, "prompt"), call, call.onDelta);
    }
    const asked = withOutputTool(request, format, formats);
    const deltas = call.onDelta && new OutputToolDeltas(asked.name, call.onDelta);
    let answer: ModelResponse;
    try {
      answer = await this.#attempt(asked.request, call, deltas?.add);
    } catch (error) {
      const isOurs = formats.forcesTools && !isForcedByCaller(request);
      if (!isOurs || !(error instanceof ModelError) || !refusesForcedTool(error)) throw error;
      formats.forcesTools = false;
      return await this.#askByTool(request, format, { call, formats });
    }
    // A server that ignores tools has not shown the schema to the model: the next call is made in another way.
    const isWhole = answer.finishReason !== "length" && answer.finishReason !== "content_filter";
    const isIgnored = asked.isForced && answer.toolCalls.length === 0 && isWhole;
    if (isIgnored && call.structuredOutput === "auto") formats.refused(request, "tool");
    return withoutOutputTool(answer, asked.name);
  }

  async #attempt(request: ModelRequest, { send }: FormedCall, onDelta: OnDelta): Promise<ModelResponse> {
    const warnings: ModelWarning[] = [];
    let sendsImages = this.#takesImages;
    for (;;) {
      const shown = this.#files.formed(sendsImages ? request : withoutToolImages(request));
      const asked = this.#reasoning.leftOut(shown);
      try {
        const answer = await send(asked, onDelta);
        this.#files.accept(asked);
        // A concurrent call may have found it out before.
        if (!sendsImages) this.#takesImages = false;
        return warnings.length === 0 ? answer : { ...answer, warnings: [...(answer.warnings ?? []), ...warnings] };
      } catch (error) {
        if (!(error instanceof ModelError)) throw error;
        if (refusesFiles(error) && this.#files.refuse(asked)) warnings.push(filesRefused(error));
        else if (refusesReasoning(error) && this.#reasoning.add(asked)) {
          if (error.partialOutputTokens !== undefined) throw asRetryable(error);
        } else if (sendsImages && refusesImages(error) && withoutToolImages(request) !== request) sendsImages = false;
        else throw error;
      }
    }
  }
}

/** Whether the request itself demands a call: a server that refuses this would refuse it beside every format. */
function isForcedByCaller({ toolChoice }: ModelRequest): boolean {
  return typeof toolChoice === "object" || toolChoice === "required";
}

function filesRefused({ message }: ModelError): ModelWarning {
  return {
    code: "files_refused",
    message: `The server refused files of this call, so the model gets only their names: ${message.slice(0, LONGEST_REFUSAL)}`,
  };
}

/** A refusal inside an answer is billed, so the call is repeated as an attempt of its own. */
function asRetryable(error: ModelError): ModelError {
  const { message, status, mayHaveBeenSent, partialInputTokens, partialOutputTokens, details } = error;
  const rest = { status, mayHaveBeenSent, partialInputTokens, partialOutputTokens, details };
  return new ModelError(message, { ...rest, retryable: true, cause: error });
}

/** Most characters of each refusal in a message about several. */
const LONGEST_REFUSAL = 300;

function refusedChoice(error: ModelError, chosen: StructuredOutput): ModelError {
  const others = structuredOutputs.filter((one) => one !== chosen).map((one) => `"${one}"`);
  const advice = `Set structuredOutput of the model to "auto", or to ${others.slice(0, -1).join(", ")} or ${others.at(-1)}.`;
  const message = `The server refused structuredOutput "${chosen}": ${asSentence(error.message)} ${advice}`;
  return reworded(error, message, { refused: [chosen], retryable: false });
}

interface Refusal {
  readonly format: StructuredOutput;
  readonly message: string;
}

/** An error that remains after structured output was asked for in several ways. */
function withRefusals(error: ModelError, refusals: readonly Refusal[]): ModelError {
  const list = refusals.map(({ format, message }) => `${format} (${message.slice(0, LONGEST_REFUSAL)})`).join("; ");
  const message = `${asSentence(error.message)} Before that the server refused these values of structuredOutput: ${list}.`;
  return reworded(error, message, { refused: refusals.map(({ format }) => format), retryable: error.retryable });
}

function asSentence(message: string): string {
  return /[.!?]$/.test(message) ? message : `${message}.`;
}

function reworded(
  error: ModelError,
  message: string,
  { refused, retryable }: { readonly refused: readonly StructuredOutput[]; readonly retryable: boolean },
): ModelError {
  const { status, retryAfterMs, mayHaveBeenSent, partialInputTokens, partialOutputTokens, details } = error;
  return new ModelError(message, {
    retryable,
    status,
    retryAfterMs,
    mayHaveBeenSent,
    partialInputTokens,
    partialOutputTokens,
    cause: error,
    details: { ...details, refusedFormats: refused.join(", ") },
  });
}
