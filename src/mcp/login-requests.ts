import { ToolNotStartedError } from "../errors/index.ts";
import type { JsonObject } from "../state/index.ts";
import type { AskedRequest, RunContext, ToolAnswer } from "../tools/index.ts";
import { callNoteOf } from "./call-note.ts";
import type { McpAuthorization } from "./mcp-authorization.ts";
import { McpAuthorizationError } from "./mcp-authorization-error.ts";

/** Attempts of a call after which a server that asks for another login is not believed. */
const MOST_ATTEMPTS = 10;

type Execute<Result> = (args: JsonObject, run: RunContext) => Promise<Result>;

/**
 * The tool's code, which asks for a login if the server needs one: an `auth` request with the address of the login page. After the
 * decision the code runs again.
 */
export function withLogin<Result>(
  authorization: McpAuthorization | undefined,
  execute: Execute<Result>,
): Execute<Result | AskedRequest> {
  if (authorization === undefined) return execute;
  return async (args, run) => {
    const { answer } = run;
    if (isRefusedLogin(answer) && !isForQuestion(run)) {
      await authorization.of(run.actorId).discard();
      const reason = answer.reason === null || answer.reason === "" ? "" : `: ${answer.reason}`;
      const how = answer.verdict === "expired" ? "the request for it has expired" : `it was rejected${reason}`;
      throw new ToolNotStartedError(`The tool was not run: it needs a login, and ${how}.`);
    }
    try {
      return await execute(args, run);
    } catch (error) {
      if (!(error instanceof McpAuthorizationError)) throw error;
      if (run.attempt > MOST_ATTEMPTS) {
        throw new ToolNotStartedError(`The tool was not run: the server asks for a login again after each one.`);
      }
      return run.ask(questionOf(error));
    }
  };
}

function isRefusedLogin(answer: ToolAnswer | null): answer is ToolAnswer {
  return answer?.kind === "auth" && (answer.verdict === "rejected" || answer.verdict === "expired");
}

/** Whether the answer belongs to a visit that the server itself has asked for in the middle of the call. */
function isForQuestion({ noted }: RunContext): boolean {
  const phase = callNoteOf(noted)?.phase;
  return phase === "parked" || phase === "held";
}

function questionOf({ server, url, scopes }: McpAuthorizationError) {
  const prompt = `The MCP server "${server}" needs your login. Open this address, log in, and then continue:\n${url}`;
  return { kind: "auth", prompt, arguments: { server, url, scopes: [...scopes] } } as const;
}
