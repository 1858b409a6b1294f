import { ModelError } from "../errors/index.ts";
import type { ModelRequest, ModelResponse } from "../state/index.ts";
import { refusesImages, withoutToolImages } from "./images-refused.ts";
import { RefusedReasoning, refusesReasoning } from "./reasoning-refused.ts";
import { askedFor, type KnownFormats, refusesFormat, type StructuredOutput } from "./structured-output.ts";

type Send = (request: ModelRequest) => Promise<ModelResponse>;

/**
 * Repeats a call in another form if the server has refused the format of the answer, the images of tools or reasoning that it wrote
 * itself. A refusal has cost nothing, and what the server accepts is remembered.
 */
export class FormFallback {
  #takesImages = true;
  readonly #reasoning = new RefusedReasoning();

  /** @param format The only format to ask for, or the formats that are known to work, which are looked up once they are needed. */
  async call(
    request: ModelRequest,
    format: StructuredOutput | (() => KnownFormats | Promise<KnownFormats>),
    send: Send,
  ): Promise<ModelResponse> {
    if (request.responseFormat?.type !== "json_schema") return await this.#attempt(request, send);
    if (typeof format === "string") return await this.#attempt(askedFor(request, format), send);
    const formats = await format();
    for (;;) {
      const next = formats.formatFor(request);
      try {
        return await this.#attempt(askedFor(request, next), send);
      } catch (error) {
        if (next === "prompt" || !(error instanceof ModelError) || !refusesFormat(error)) throw error;
        formats.refused(request, next);
      }
    }
  }

  async #attempt(request: ModelRequest, send: Send): Promise<ModelResponse> {
    const asked = this.#reasoning.leftOut(this.#takesImages ? request : withoutToolImages(request));
    try {
      return await send(asked);
    } catch (error) {
      if (!(error instanceof ModelError)) throw error;
      if (refusesReasoning(error) && this.#reasoning.add(asked)) {
        if (error.partialOutputTokens !== undefined) throw asRetryable(error);
        return await this.#attempt(request, send);
      }
      const rest = withoutToolImages(asked);
      if (rest === asked || !refusesImages(error)) throw error;
      const answer = await send(rest);
      this.#takesImages = false;
      return answer;
    }
  }
}

/** A refusal inside an answer is billed, so the next attempt is one of its own. */
function asRetryable(error: ModelError): ModelError {
  const { message, status, mayHaveBeenSent, partialInputTokens, partialOutputTokens, details } = error;
  const rest = { status, mayHaveBeenSent, partialInputTokens, partialOutputTokens, details };
  return new ModelError(message, { ...rest, retryable: true, cause: error });
}
