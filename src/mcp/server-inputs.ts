import { visible } from "../base/index.ts";
import { InvalidInputError, ModelError } from "../errors/index.ts";
import type { JsonObject } from "../state/index.ts";
import type { AskInput, RunContext, ToolAnswer } from "../tools/index.ts";
import { z } from "zod";
import type { ServerInput } from "./call-note.ts";
import { formOf } from "./mcp-form.ts";
import type { McpOptions } from "./mcp-options.ts";
import { listedRoots } from "./mcp-roots.ts";
import { generateInputOf, sampledOf, samplingWords } from "./mcp-sampling.ts";
import type { McpSecrets } from "./mcp-secrets.ts";

/** What follows from a request of a server for input. */
export type InputStep =
  | { readonly type: "answered"; readonly response: JsonObject }
  /** A person has to decide first. */
  | { readonly type: "asking"; readonly question: AskInput }
  /** `why` is the rest of a sentence about the server. */
  | { readonly type: "refused"; readonly why: string };

/** The state of a request for input within its call. */
export interface InputSoFar {
  readonly run: RunContext;
  /** The decision on the question that was asked for it; `null` before. */
  readonly answer: ToolAnswer | null;
  /** Number of questions that were asked for it. */
  readonly tries: number;
  /** Number of model calls that the server has used in this call. */
  readonly samples: number;
}

/** Number of wrong answers of people after which a question is cancelled. */
const MOST_TRIES = 10;
const MOST_SAMPLES = 10;
const LONGEST_MESSAGE = 4_000;
const LONGEST_PROMPT = 10_000;
const LONGEST_URL = 2_000;

const formParamsSchema = z.object({
  mode: z.literal("form").optional(),
  message: z.string().min(1),
  requestedSchema: z.unknown(),
});
const urlParamsSchema = z.object({ mode: z.literal("url"), message: z.string(), url: z.string().max(LONGEST_URL) });

/** Answers the requests of one server for input: questions by people, model calls, and the list of roots. */
export class ServerInputs {
  readonly #options: McpOptions;
  readonly #secrets: McpSecrets;

  constructor(options: McpOptions, secrets: McpSecrets) {
    this.#options = options;
    this.#secrets = secrets;
  }

  /** Rejects with `AgentStopError` if a limit forbids a model call. */
  async step({ method, params = {} }: ServerInput, soFar: InputSoFar): Promise<InputStep> {
    const { elicitation, sampling = false, roots } = this.#options;
    if (method === "elicitation/create" && elicitation !== false) return await this.#elicited(params, soFar);
    if (method === "sampling/createMessage" && sampling !== false) return await this.#sampled(params, soFar);
    if (method === "roots/list" && roots !== undefined) {
      return { type: "answered", response: { roots: listedRoots(roots).map((root) => ({ ...root })) } };
    }
    return { type: "refused", why: `asked for ${JSON.stringify(method)}, which was not offered to it` };
  }

  async #elicited(params: JsonObject, { answer, tries }: InputSoFar): Promise<InputStep> {
    if (params["mode"] === "url") return this.#visited(params, answer);
    const read = formParamsSchema.safeParse(params);
    const form = read.success ? formOf(read.data.requestedSchema) : undefined;
    if (!read.success || form === undefined) {
      return {
        type: "refused",
        why: "asked a question whose form is larger than allowed, or not one that the protocol allows",
      };
    }
    const ended = refusalOf(answer);
    if (ended !== undefined) return ended;
    let problem: string | undefined;
    if (answer !== null) {
      const filled = await form.read(answer.text);
      if (filled.ok) return { type: "answered", response: { action: "accept", content: filled.content as JsonObject } };
      problem = filled.problem;
      if (tries >= MOST_TRIES) return { type: "answered", response: { action: "cancel" } };
    }
    const lines = [
      ...(problem === undefined ? [] : [`The last answer is not valid: ${problem.slice(0, 1_000)}`]),
      `The MCP server "${this.#options.name}" asks: ${shortened(read.data.message)}`,
      ...(form.description === "" ? [] : [form.description]),
    ];
    const { options } = form;
    return this.#ask("question", lines.join("\n"), {
      server: this.#options.name,
      message: shortened(read.data.message),
      schema: form.schema,
      ...(options === undefined ? {} : { options }),
    });
  }

  #visited(params: JsonObject, answer: ToolAnswer | null): InputStep {
    const read = urlParamsSchema.safeParse(params);
    const url = read.success ? addressOf(read.data.url) : undefined;
    if (!read.success || url === undefined) {
      return { type: "refused", why: "asked to open an address that is neither https: nor of this machine" };
    }
    const ended = refusalOf(answer);
    if (ended !== undefined) return ended;
    if (answer !== null) return { type: "answered", response: { action: "accept" } };
    const message = shortened(read.data.message);
    const prompt = `The MCP server "${this.#options.name}" asks to open ${url.href} (on ${url.host}) in a browser: ${message}`;
    return this.#ask("auth", prompt, { server: this.#options.name, message, url: url.href });
  }

  async #sampled(params: JsonObject, { run, answer, samples }: InputSoFar): Promise<InputStep> {
    const options = this.#options.sampling || {};
    const { maxCalls = MOST_SAMPLES, needsApproval = false } = options;
    if (samples >= maxCalls) return { type: "refused", why: `asked for more than ${maxCalls} model calls in one call` };
    const made = generateInputOf(params, options);
    if ("problem" in made) return { type: "refused", why: `asked for a model call, but ${made.problem}` };
    if (answer !== null && answer.verdict !== "approved") {
      return { type: "refused", why: "asked for a model call, which was not approved" };
    }
    if (needsApproval && answer === null) {
      const words = samplingWords(made.input);
      const prompt = `The MCP server "${this.#options.name}" asks for a model call on the agent's budget:\n${words}`;
      return this.#ask("approval", prompt, { server: this.#options.name, request: words });
    }
    try {
      return { type: "answered", response: sampledOf(await run.generate(made.input)) };
    } catch (error) {
      if (!(error instanceof ModelError || error instanceof InvalidInputError)) throw error;
      return { type: "refused", why: `asked for a model call, which failed: ${error.message}` };
    }
  }

  #ask(kind: AskInput["kind"], prompt: string, about: JsonObject): InputStep {
    const text = visible(this.#secrets.redact(prompt).toWellFormed());
    return {
      type: "asking",
      question: { kind, prompt: text.slice(0, LONGEST_PROMPT).toWellFormed(), arguments: about },
    };
  }
}

/** A refusal by a person, for the server; the reason stays here. */
function refusalOf(answer: ToolAnswer | null): InputStep | undefined {
  if (answer?.verdict === "rejected") return { type: "answered", response: { action: "decline" } };
  return answer?.verdict === "expired" ? { type: "answered", response: { action: "cancel" } } : undefined;
}

function addressOf(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || url.username !== "" || url.password !== "") return undefined;
  const isLoopback = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(url.hostname);
  return url.protocol === "https:" || (url.protocol === "http:" && isLoopback) ? url : undefined;
}

function shortened(message: string): string {
  const text = visible(message.toWellFormed());
  return text.length <= LONGEST_MESSAGE ? text : `${text.slice(0, LONGEST_MESSAGE).toWellFormed()}…`;
}
