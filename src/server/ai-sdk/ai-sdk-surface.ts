import { z } from "zod";
import { type OptionsSchema, listRule, nameRule, optionsOf } from "../../base/index.ts";
import { NotFoundError } from "../../errors/index.ts";
import type { Agent } from "../../runtime/index.ts";
import type { Failure } from "../core/failures.ts";
import { type Call, type Route, route } from "../core/route.ts";
import type { Surface } from "../core/surface.ts";
import { chatBodySchema, chatIdSchema } from "./chat-request.ts";
import { type FollowedTurn, resumedChat, startChat } from "./chat-start.ts";
import { chatFrames, streamHeaders } from "./chat-stream.ts";
import { storedChat } from "./stored-chat.ts";

/** Options of `aiSdkSurface()`. */
export interface AiSdkSurfaceOptions {
  /** Names of the definitions to serve. Default: all definitions of the runtime. */
  readonly agents?: readonly string[] | undefined;
}

const aiSdkOptionsSchema: OptionsSchema<AiSdkSurfaceOptions> = {
  rules: { agents: listRule("a list of names of definitions", nameRule) },
  instead: { definitions: "agents", names: "agents" },
};

/**
 * The UI message stream of AI SDK 7, for `useChat` with `new DefaultChatTransport({ api: "/ai-sdk/{agent}" })`. A chat is an agent, an
 * answer is a turn.
 */
export function aiSdkSurface(given: AiSdkSurfaceOptions = {}): Surface {
  const { agents } = optionsOf<AiSdkSurfaceOptions>(given, "aiSdkSurface()", aiSdkOptionsSchema);
  return { name: "ai-sdk", paths: ["/ai-sdk"], routes: routesOf(agents), failure: plainFailure };
}

const params = z.object({ agent: z.string().meta({ description: "Name of a definition." }) });
const chatParams = params.extend({ id: chatIdSchema });

const messagesSchema = z.object({
  messages: z.array(
    z.looseObject({ id: z.string(), role: z.enum(["user", "assistant"]), parts: z.array(z.unknown()) }),
  ),
});

const chunkStream = z.looseObject({ type: z.string() });

function routesOf(served: readonly string[] | undefined): readonly Route[] {
  const nameOf = ({ caller, params: { agent } }: Call<z.output<typeof params>>): string => {
    if (caller.runtime.definitions.has(agent) && (served?.includes(agent) ?? true)) return agent;
    throw new NotFoundError("there is no such agent");
  };
  /** The agent of a chat; `undefined` for a chat without messages. */
  const agentOf = async (call: Call<z.output<typeof chatParams>>): Promise<Agent | undefined> => {
    const agentId = call.caller.agentIdOf(nameOf(call), call.params.id);
    try {
      return await call.caller.root(agentId);
    } catch (error) {
      if (error instanceof NotFoundError) return undefined;
      throw error;
    }
  };
  return [
    route({
      id: "aiSdk.chat",
      method: "POST",
      path: "/ai-sdk/{agent}",
      access: "caller",
      summary: "Takes the last message of a chat, and streams the answer",
      params,
      body: chatBodySchema,
      responses: { 200: { description: "The chunks of the answer.", stream: chunkStream } },
      handle: async (call) => streamOf(call, await startChat(call.caller, nameOf(call), call.body)),
    }),
    route({
      id: "aiSdk.resume",
      method: "GET",
      path: "/ai-sdk/{agent}/{id}/stream",
      access: "caller",
      summary: "Streams the running answer of a chat from its beginning",
      params: chatParams,
      query: z.object({
        message: z.string().optional().meta({
          description: "Id of an answer that is streamed even if it does not run any more.",
        }),
      }),
      responses: {
        200: { description: "The chunks of the answer.", stream: chunkStream },
        204: { description: "No answer is running." },
      },
      handle: async (call) => {
        const agent = await agentOf(call);
        const followed = agent && (await resumedChat(call.caller, agent, call.query.message));
        return followed === undefined ? new Response(null, { status: 204 }) : await streamOf(call, followed);
      },
    }),
    route({
      id: "aiSdk.messages",
      method: "GET",
      path: "/ai-sdk/{agent}/{id}",
      access: "caller",
      summary: "The messages of a chat, for the `messages` of `useChat`",
      params: chatParams,
      query: z.object({
        last: z.coerce
          .number()
          .int()
          .min(1)
          .max(1_000)
          .default(100)
          .meta({ description: "Number of turns, 1 to 1,000." }),
      }),
      responses: { 200: { description: "The messages; none for a new chat.", schema: messagesSchema } },
      handle: async (call) => {
        const agent = await agentOf(call);
        return Response.json({ messages: agent ? await storedChat(call.caller, agent, call.query.last) : [] });
      },
    }),
    route({
      id: "aiSdk.stop",
      method: "POST",
      path: "/ai-sdk/{agent}/{id}/stop",
      access: "caller",
      summary: "Ends the open turn of a chat. A turn continues when its client disconnects.",
      params: chatParams,
      body: z.strictObject({ reason: z.string().optional() }).optional(),
      responses: { 200: { description: "Whether a turn was open.", schema: z.object({ stopped: z.boolean() }) } },
      handle: async (call) => {
        const turn = (await agentOf(call))?.openTurn();
        await turn?.abort(call.body?.reason);
        return Response.json({ stopped: turn !== undefined });
      },
    }),
  ];
}

async function streamOf(call: Call, followed: FollowedTurn): Promise<Response> {
  const replayed = followed.isReplayed ? { "idempotency-replayed": "true" } : {};
  const headers = { ...streamHeaders, ...replayed };
  return await call.stream((signal) => chatFrames(call.caller, followed, signal), { headers });
}

/** The message as text, because it becomes `error.message` of `useChat`. */
function plainFailure({ status, message, headers }: Failure): Response {
  return new Response(message, { status, headers: { ...headers, "content-type": "text/plain; charset=utf-8" } });
}
