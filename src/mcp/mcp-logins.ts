import { idRule, optionsOf, type OptionsSchema } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { Forget } from "../tools/index.ts";
import type { McpOptions, McpOwner } from "./mcp-options.ts";

/** Logins of people at an MCP server. */
export interface McpLogins {
  /**
   * Begins a login, and resolves with the address of the login page. Calls begin theirs by themselves; use this to log in before. Rejects
   * with `McpServerError` if the authorization server cannot be used.
   */
  begin(options: McpOwner): Promise<string>;
  /**
   * Ends a login with the whole address to which the authorization server sent the browser. `actorId` must be the person whom your route
   * has authenticated, so that no person logs in for another one. Afterwards decide the call's request as `provided`. Rejects with
   * `InvalidInputError` if the login was begun for another actor or has ended, and with `McpServerError` if it was refused.
   */
  finish(redirectedTo: string | URL, options: McpOwner): Promise<void>;
  /** Forgets the actor's tokens; its next call needs a login. */
  forget(options: McpOwner): Promise<void>;
}

/** The error of a login that the options do not provide for. */
export function noLogins(name: string): InvalidInputError {
  return new InvalidInputError(`mcp("${name}"): people log in only with the option auth.oauth`);
}

/** The login of one actor. */
interface ActorLogin {
  begin(): Promise<string>;
  finish(redirect: URLSearchParams): Promise<void>;
  forget(): Promise<void>;
}

/** The logins of a server; without `ofActor` each method throws. */
export function loginsOf(
  { name }: Pick<McpOptions, "name">,
  ofActor: ((actorId: string | null) => ActorLogin) | undefined,
): McpLogins {
  const loginOf = (options: McpOwner, of: string): ActorLogin => {
    const { actorId } = optionsOf<McpOwner>(options, of, loginOptionsSchema);
    if (ofActor === undefined) throw noLogins(name);
    return ofActor(actorId);
  };
  return Object.freeze({
    begin: async (options: McpOwner) => await loginOf(options, "logins.begin()").begin(),
    finish: async (redirectedTo: string | URL, options: McpOwner) => {
      const login = loginOf(options, "logins.finish()");
      await login.finish(parametersOf(redirectedTo));
    },
    forget: async (options: McpOwner) => await loginOf(options, "logins.forget()").forget(),
  });
}

/** How the logins of an owner are forgotten with the owner: those of the actor with the same id. `undefined` without logins. */
export function forgetLoginsOf(
  { auth }: Pick<McpOptions, "auth">,
  ofActor: ((actorId: string) => Pick<ActorLogin, "forget">) | undefined,
): Forget | undefined {
  if (ofActor === undefined || auth?.oauth === undefined) return undefined;
  return async ({ scope, id }) => {
    if (scope === "owner") await ofActor(id).forget();
  };
}

const loginOptionsSchema: OptionsSchema<McpOwner> = {
  rules: { actorId: (value, where) => (value === null ? value : idRule(value, where)) },
  needed: ["actorId"],
  instead: { userId: "actorId", ownerId: "actorId" },
};

function parametersOf(redirectedTo: string | URL): URLSearchParams {
  const text = redirectedTo instanceof URL ? redirectedTo.href : redirectedTo;
  // The address contains a code, so the error does not show it.
  if (typeof text !== "string" || text.length > 20_000 || !URL.canParse(text)) {
    throw new InvalidInputError(
      "logins.finish(): give the whole address to which the authorization server sent the browser, such as request.url",
    );
  }
  return new URL(text).searchParams;
}
