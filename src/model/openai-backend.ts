import type { ModelError } from "../errors/index.ts";
import type { FilePart, ModelRequest } from "../state/index.ts";
import type { CallContext, ModelBackend, PreparedCall } from "./adapter-model.ts";
import type { AnswerInProgress } from "./guarded-call.ts";
import type { OpenaiClient } from "./openai-client.ts";
import { readAnswer, type ReceivedAnswer } from "./read-answer.ts";
import { type KnownFormats, knownFormatsOf, type StructuredOutput } from "./structured-output.ts";
import type { WireWriter } from "./wire-calls.ts";
import type { WireObject } from "./wire-values.ts";

/** An API of OpenAI: its path, its requests and its answers. */
export interface OpenaiApi {
  /** The path below the base URL. */
  readonly path: string;
  /** The only format that can be asked for, if fields of the user set it. */
  fixedFormat(request: ModelRequest, reader: Pick<WireWriter, "provider">): StructuredOutput | undefined;
  /** Tools that the server executes itself during an answer. */
  readonly hostedTools?: readonly string[];
  /** Whether requests can carry the file. */
  takesFile(part: FilePart): boolean;
  body(request: ModelRequest, context: BodyContext): WireObject;
  /** Whether the call may write cache entries of the longer lifetime. */
  writesLongCache(request: ModelRequest): boolean;
  /** An empty answer to this request. */
  answer(request: ModelRequest): AnswerInProgress & ReceivedAnswer;
  /** See `ModelBackend`. */
  adaptTo?(refusal: ModelError): boolean;
}

/** What a body depends on beside the request. */
export interface BodyContext {
  readonly reader: WireWriter;
  readonly stream: boolean;
  /** The agent that calls; `undefined` outside of a runtime. */
  readonly agentId: string | undefined;
}

interface BackendOptions {
  readonly name: string;
  readonly provider: string;
  readonly api: OpenaiApi;
  /** Called on first use, and again if it has failed: environment variables may be set in between. */
  readonly connect: () => OpenaiClient | Promise<OpenaiClient>;
}

/** Known once the model is used for the first time. */
interface Connection {
  readonly client: OpenaiClient;
  /** The model and its server, as stored in messages. */
  readonly adapter: WireWriter;
}

/** One model at one server, reached by a client of the `openai` package. */
export class OpenaiBackend implements ModelBackend {
  readonly hostedTools: readonly string[];
  readonly #options: BackendOptions;
  #connection: Promise<Connection> | undefined;

  constructor(options: BackendOptions) {
    this.hostedTools = options.api.hostedTools ?? [];
    this.#options = options;
  }

  adaptTo(refusal: ModelError): boolean {
    return this.#options.api.adaptTo?.(refusal) ?? false;
  }

  get modelId(): string {
    return this.#options.name;
  }

  async adapter(): Promise<WireWriter> {
    return (await this.#connected()).adapter;
  }

  fixedFormat(request: ModelRequest): StructuredOutput | undefined {
    return this.#options.api.fixedFormat(request, this.#options);
  }

  takesFile(part: FilePart): boolean {
    return this.#options.api.takesFile(part);
  }

  async knownFormats(): Promise<KnownFormats> {
    return knownFormatsOf((await this.#connected()).client.address, this.#options.name);
  }

  writesLongCache(request: ModelRequest): boolean {
    return this.#options.api.writesLongCache(request);
  }

  async prepare(request: ModelRequest, { isListened, agentId }: CallContext): Promise<PreparedCall> {
    const { api } = this.#options;
    const { client, adapter } = await this.#connected();
    const body = api.body(request, { reader: adapter, stream: isListened, agentId });
    const progress = api.answer(request);
    const isStreamed = body["stream"] === true;
    // Whether the answer is a stream, or has arrived completely.
    let isCountable = false;
    return {
      isStreamed,
      progress,
      exchange: async (guard, onDelta) => {
        const received = await client.send({ path: api.path, body }, guard);
        await readAnswer(received, progress, {
          signal: guard.signal,
          asksForStream: isStreamed,
          onDelta,
          onForm: (isStream) => (isCountable = isStream),
          onProgress: () => guard.heard(),
          onWork: () => guard.pause(),
          onLastEvent: () => guard.expectEnd(),
        });
        isCountable = true;
        if (progress.fault !== undefined) throw progress.fault;
      },
      isCountable: () => isCountable && (progress.isCountable ?? true),
      secrets: () => client.secrets(),
    };
  }

  #connected(): Promise<Connection> {
    this.#connection ??= this.#connect().catch((error: unknown) => {
      this.#connection = undefined;
      throw error;
    });
    return this.#connection;
  }

  async #connect(): Promise<Connection> {
    const { name, provider, connect } = this.#options;
    const client = await connect();
    return { client, adapter: Object.freeze({ provider, model: name, server: client.address }) };
  }
}
