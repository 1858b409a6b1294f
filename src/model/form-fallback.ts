import { ModelError } from "../errors/index.ts";
import type { ModelRequest, ModelResponse } from "../state/index.ts";
import { refusesImages, withoutToolImages } from "./images-refused.ts";
import { askedFor, type KnownFormats, refusesFormat, type StructuredOutput } from "./structured-output.ts";

type Send = (request: ModelRequest) => Promise<ModelResponse>;

/**
 * Repeats a call in another form if the server has refused the format of the answer or the images of tools. A refusal has cost
 * nothing, and what the server accepts is remembered.
 */
export class FormFallback {
  #takesImages = true;

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
    const asked = this.#takesImages ? request : withoutToolImages(request);
    try {
      return await send(asked);
    } catch (error) {
      const rest = withoutToolImages(asked);
      if (rest === asked || !(error instanceof ModelError) || !refusesImages(error)) throw error;
      const answer = await send(rest);
      this.#takesImages = false;
      return answer;
    }
  }
}
