import { z } from "zod";
import { type OptionsSchema, listRule, nameRule, oneOfRule, optionsOf, ruleOf } from "../../base/index.ts";
import { type Route, type RouteShape, route } from "../core/route.ts";
import type { Surface } from "../core/surface.ts";
import { chatRoutes } from "./chat-routes.ts";
import { CONVERSATION_HEADER, ServedModels } from "./served-models.ts";
import { openAiFailure } from "./protocol-errors.ts";
import { responsesRoutes } from "./responses.ts";

/** Options of `openaiSurface()`. */
export interface OpenAiSurfaceOptions {
  /** Names of the definitions to serve, each as a model. Default: all definitions of the runtime. */
  readonly agents?: readonly string[] | undefined;
  /** Base path of the routes. Default `/v1`. */
  readonly path?: string | undefined;
  /**
   * Headers with the front end's chat id, such as `X-OpenWebUI-Chat-Id`, in addition to `X-Troupe-Conversation`. A
   * front end sends the whole history each time, so a request without an answer in it starts anew. Default: none.
   */
  readonly chatIdHeaders?: readonly string[] | undefined;
  /**
   * Treatment of system and developer messages. `take` makes them the first message of a new agent, with the weight of
   * a user message; its instructions remain those of its definition. Default `take`.
   */
  readonly systemMessages?: "take" | "ignore" | undefined;
}

const pathRule = ruleOf(
  'a path like "/v1", without a trailing slash',
  (value) => typeof value === "string" && /^(?:\/[\w.~-]+)+$/.test(value),
);
const headerRule = ruleOf(
  'a header name such as "X-OpenWebUI-Chat-Id"',
  (value) => typeof value === "string" && /^[\w!#$%&'*+.^`|~-]{1,100}$/.test(value),
);

const openAiOptionsSchema: OptionsSchema<OpenAiSurfaceOptions> = {
  rules: {
    agents: listRule("a list of names of definitions", nameRule),
    path: pathRule,
    chatIdHeaders: listRule("a list of names of headers", headerRule),
    systemMessages: oneOfRule("take", "ignore"),
  },
  instead: { definitions: "agents", names: "agents", models: "agents", headers: "chatIdHeaders" },
};

/** Headers that the official client sends from browsers. */
const clientHeaders =
  "openai-organization openai-project x-should-retry " +
  "x-stainless-arch x-stainless-helper-method x-stainless-lang x-stainless-os x-stainless-package-version " +
  "x-stainless-retry-count x-stainless-runtime x-stainless-runtime-version x-stainless-timeout";

/**
 * OpenAI's protocol, where a model is the definition of an agent: `GET /v1/models`, `POST /v1/chat/completions`, and
 * the Responses API.
 */
export function openaiSurface(given: OpenAiSurfaceOptions = {}): Surface {
  const options = optionsOf<OpenAiSurfaceOptions>(given, "openaiSurface()", openAiOptionsSchema);
  const { agents, path = "/v1", systemMessages = "take" } = options;
  const chatIdHeaders = (options.chatIdHeaders ?? []).map((name) => name.toLowerCase());
  const place = new ServedModels({ agents, path, chatIdHeaders, takesSystem: systemMessages === "take" });
  return {
    name: "openai",
    paths: [path],
    headers: [CONVERSATION_HEADER, ...chatIdHeaders, ...clientHeaders.split(" ")],
    routes: [...modelRoutes(place), ...chatRoutes(place), ...responsesRoutes(place)],
    failure: openAiFailure,
  };
}

const modelSchema = z
  .object({ id: z.string(), object: z.literal("model"), created: z.int(), owned_by: z.string() })
  .meta({ id: "Model" });

function modelOf({ name }: { readonly name: string }): z.output<typeof modelSchema> {
  // The creation time of a definition is unknown, and all servers must return the same.
  return { id: name, object: "model", created: 0, owned_by: "troupe" };
}

function modelRoutes(place: ServedModels): readonly Route[] {
  const shape = { method: "GET", access: "caller" } as const satisfies Partial<RouteShape>;
  return [
    route({
      ...shape,
      id: "openai.listModels",
      path: `${place.path}/models`,
      summary: "The agents as models",
      responses: {
        200: {
          description: "All models.",
          schema: z.object({ object: z.literal("list"), data: z.array(modelSchema) }),
        },
      },
      handle: ({ caller }) => Response.json({ object: "list", data: place.models(caller).map(modelOf) }),
    }),
    route({
      ...shape,
      id: "openai.getModel",
      path: `${place.path}/models/{model}`,
      summary: "One model",
      params: z.object({ model: z.string() }),
      responses: { 200: { description: "The model.", schema: modelSchema } },
      handle: ({ caller, params }) => Response.json(modelOf(place.definitionOf(caller, params.model))),
    }),
  ];
}
