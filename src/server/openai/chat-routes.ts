import { z } from "zod";
import type { TurnRest } from "../../runtime/index.ts";
import { jsonObjectSchema } from "../../state/index.ts";
import type { Call, Route } from "../core/route.ts";
import { route } from "../core/route.ts";
import { sealedId } from "../core/url-ids.ts";
import { answerOf, type ChatAnswer } from "./chat-answer.ts";
import { ChatClients } from "./chat-clients.ts";
import { type ChatBody, chatBodySchema, readChat } from "./chat-request.ts";
import { type Answering, type Asking, bodyMarkOf, type Conversation, startChat } from "./chat-start.ts";
import { chatFrames, type CompletionHead, endOfQuestion, refuseApprovals } from "./chat-stream.ts";
import { CONVERSATION_HEADER, type ServedModels } from "./served-models.ts";
import { badRequest, type ProtocolError } from "./protocol-errors.ts";

const completionSchema = z
  .object({
    id: z.string(),
    object: z.literal("chat.completion"),
    created: z.int(),
    model: z.string(),
    choices: z.array(
      z.object({
        index: z.literal(0),
        message: z.looseObject({ role: z.literal("assistant"), content: z.string().nullable() }),
        logprobs: z.null(),
        finish_reason: z.enum(["stop", "length", "tool_calls", "content_filter"]),
      }),
    ),
    usage: jsonObjectSchema,
    troupe: jsonObjectSchema,
  })
  .meta({ id: "ChatCompletion" });

const chunkSchema = z.looseObject({ id: z.string(), object: z.literal("chat.completion.chunk") });

/** Completions: the agent with the model's name answers the last message. */
export function chatRoutes(place: ServedModels): readonly Route[] {
  let clients: ChatClients | undefined;
  return [
    route({
      id: "openai.chat",
      method: "POST",
      path: `${place.path}/chat/completions`,
      access: "caller",
      summary: "Answers the last message of a conversation",
      body: chatBodySchema,
      responses: { 200: { description: "The answer, or its chunks.", schema: completionSchema, stream: chunkSchema } },
      handle: async (call) => {
        clients ??= new ChatClients(call.clock);
        const asking = askingOf(call, place);
        const answering = await startChat(asking);
        const leave = answering.isStateless ? clients.enter(answering) : () => undefined;
        const completion = new Completion(call, { asking, answering, clients });
        try {
          return await (call.body.stream === true ? completion.streamed(leave) : completion.whole(leave));
        } catch (error) {
          leave(false);
          throw error;
        }
      },
    }),
  ];
}

function askingOf(call: Call<unknown, unknown, unknown, ChatBody>, place: ServedModels): Asking {
  const { caller, body, idempotencyKey, clock, request } = call;
  const definition = place.definitionOf(caller, body.model);
  const retries = /^\d{1,4}$/.exec(request.headers.get("x-stainless-retry-count") ?? "")?.[0];
  return {
    caller,
    bodyMark: bodyMarkOf(body),
    chat: readChat(body, { definition, takesSystem: place.takesSystem }),
    conversation: conversationOf(request, place),
    idempotencyKey,
    retries: retries === undefined ? undefined : Number(retries),
    now: clock.now(),
  };
}

const LONGEST_NAME = 1_000;

function conversationOf(request: Request, { chatIdHeaders }: ServedModels): Conversation | undefined {
  for (const header of [CONVERSATION_HEADER, ...chatIdHeaders]) {
    const name = request.headers.get(header)?.trim() ?? "";
    if (name.length > LONGEST_NAME) throw badRequest(`${header} accepts at most ${LONGEST_NAME} characters`);
    if (name !== "") return { name, mayLackHistory: header === CONVERSATION_HEADER };
  }
  return undefined;
}

interface CompletionParts {
  readonly asking: Asking;
  readonly answering: Answering;
  readonly clients: ChatClients;
}

/** A completion for one client. */
class Completion {
  readonly #call: Call<unknown, unknown, unknown, ChatBody>;
  readonly #asking: Asking;
  readonly #answering: Answering;
  readonly #clients: ChatClients;
  readonly #head: CompletionHead;

  constructor(call: Call<unknown, unknown, unknown, ChatBody>, { asking, answering, clients }: CompletionParts) {
    this.#call = call;
    this.#asking = asking;
    this.#answering = answering;
    this.#clients = clients;
    this.#head = {
      id: sealedId("chatcmpl", answering.turnId),
      created: Math.floor(call.clock.now() / 1_000),
      model: call.body.model,
    };
  }

  async whole(leave: (left: boolean) => void): Promise<Response> {
    const settled = await this.#call.within(this.#settled());
    leave(settled === undefined && this.#call.request.signal.aborted);
    if (settled === undefined) return this.#unfinished();
    const { value: answer } = settled;
    if ("type" in answer) return refusalOf(answer);
    const { text, toolCalls, finishReason, usage, more } = answer;
    const message = {
      role: "assistant",
      content: text === "" && toolCalls.length > 0 ? null : text,
      refusal: null,
      ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
    };
    const choices = [{ index: 0, message, logprobs: null, finish_reason: finishReason }];
    const { id, ...head } = this.#head;
    const body = { id, object: "chat.completion", ...head, choices, usage, troupe: more };
    return Response.json(body, { headers: this.#headers() });
  }

  async streamed(leave: (left: boolean) => void): Promise<Response> {
    const { request } = this.#call;
    const frames = (signal: AbortSignal) =>
      chatFrames(this.#asking, this.#answering, {
        signal,
        head: this.#head,
        withUsage: this.#call.body.stream_options?.include_usage === true,
        onRest: (rest) => this.#rested(rest),
        onEnd: (isWhole) => leave(!isWhole && (request.signal.aborted || !this.#call.signal.aborted)),
      });
    return await this.#call.stream(frames, { headers: this.#headers() });
  }

  async #settled(): Promise<ChatAnswer | ProtocolError> {
    const { caller } = this.#asking;
    for (;;) {
      const rest: TurnRest = await this.#answering.turn.settled;
      if (this.#answering.isStateless && (await refuseApprovals(caller, rest)).length > 0) continue;
      const answer = await answerOf(this.#asking, this.#answering, rest);
      await this.#rested(rest);
      return answer;
    }
  }

  async #rested(rest: TurnRest): Promise<void> {
    if (!this.#answering.isStateless || rest.status !== "waiting" || rest.reason !== "request") return;
    const calls = rest.requests.filter(({ kind }) => kind === "client");
    if (calls.length > 0) this.#clients.awaitResults(this.#answering, calls);
    else await endOfQuestion(this.#answering);
  }

  #headers(): Record<string, string> {
    return this.#answering.isReplayed ? { "idempotency-replayed": "true" } : {};
  }

  #unfinished(): Response {
    const { turnId } = this.#answering;
    const message = `turn ${turnId} is still running; send the same request again`;
    const error: ProtocolError = { message, type: "server_error", param: null, code: "timeout" };
    return Response.json({ error }, { status: 504, headers: { "x-should-retry": "true" } });
  }
}

/** The answer for a failed or paused turn; a retry would return the same. */
function refusalOf(error: ProtocolError): Response {
  const status = error.code === "paused" ? 409 : 500;
  return Response.json({ error }, { status, headers: { "x-should-retry": "false" } });
}
