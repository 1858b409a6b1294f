import type { AgentDefinition } from "../../agents/index.ts";
import type { Caller } from "../core/caller.ts";
import { noSuchModel } from "./protocol-errors.ts";

/** The header with the conversation's name, for clients that support troupe. */
export const CONVERSATION_HEADER = "x-troupe-conversation";

export interface ServedModelsOptions {
  /** Names of the definitions to serve; `undefined` serves all definitions of the runtime. */
  readonly agents: readonly string[] | undefined;
  /** Base path of the routes: `/v1`. */
  readonly path: string;
  /** Headers with a front end's chat id, in lower case. */
  readonly chatIdHeaders: readonly string[];
  /** Whether system messages of clients reach the model. */
  readonly takesSystem: boolean;
}

/** The models of a surface: definitions of agents. */
export class ServedModels {
  readonly path: string;
  readonly chatIdHeaders: readonly string[];
  readonly takesSystem: boolean;
  readonly #agents: readonly string[] | undefined;

  constructor({ agents, path, chatIdHeaders, takesSystem }: ServedModelsOptions) {
    this.#agents = agents;
    this.path = path;
    this.chatIdHeaders = chatIdHeaders;
    this.takesSystem = takesSystem;
  }

  /** In the order of the runtime. */
  models({ runtime }: Pick<Caller, "runtime">): readonly AgentDefinition[] {
    return [...runtime.definitions.values()].filter(({ name }) => this.#agents?.includes(name) ?? true);
  }

  /** The definition with the model's name. Throws `NotFoundError` (404, `model_not_found`). */
  definitionOf({ runtime }: Pick<Caller, "runtime">, model: string): AgentDefinition {
    const definition = runtime.definitions.get(model);
    if (definition !== undefined && (this.#agents?.includes(model) ?? true)) return definition;
    throw noSuchModel(model);
  }
}
