import { ModelError } from "../errors/index.ts";
import type { FilePart, ModelRequest, ModelResponse } from "../state/index.ts";
import { FileForm, refusesFiles } from "./file-form.ts";
import { refusesImages, withoutToolImages } from "./images-refused.ts";
import { askedFor, type KnownFormats, refusesFormat, type StructuredOutput } from "./structured-output.ts";

type Send = (request: ModelRequest) => Promise<ModelResponse>;

/**
 * Repeats a call in another form if the server has refused the format of the answer, the images of tools or a file. A refusal has cost
 * nothing, and what the server accepts is remembered.
 */
export class FormFallback {
  readonly #files: FileForm;
  #takesImages = true;

  /** @param takes Whether the provider accepts a file that is no text. Default: it accepts none. */
  constructor(takes: (part: FilePart) => boolean = () => false) {
    this.#files = new FileForm(takes);
  }

  /** The request as it is sent, as far as that is known before a call: without images and files that the server does not accept. */
  prepared(request: ModelRequest): ModelRequest {
    return this.#files.formed(this.#takesImages ? request : withoutToolImages(request));
  }

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
    const asked = this.prepared(request);
    try {
      return await send(asked);
    } catch (error) {
      if (!(error instanceof ModelError)) throw error;
      if (refusesFiles(error) && this.#files.refuse(asked)) return await this.#attempt(request, send);
      const rest = withoutToolImages(asked);
      if (rest === asked || !refusesImages(error)) throw error;
      const answer = await send(rest);
      this.#takesImages = false;
      return answer;
    }
  }
}
