import { OutcomeUnknownError } from "../errors/index.ts";
import type { RunContext } from "../tools/index.ts";
import type { RemoteAgentOptions } from "./remote-options.ts";
import { RemoteAgentError } from "./remote-error.ts";

/** Shorter texts are not hidden, because they occur by accident. */
const SHORTEST_SECRET = 8;

/** The headers of one call's requests; hides their values in everything that is received. */
export class Credentials {
  readonly #auth: RemoteAgentOptions["auth"];
  readonly #run: RunContext;
  readonly #secrets = new Set<string>();

  constructor(auth: RemoteAgentOptions["auth"], run: RunContext) {
    this.#auth = auth;
    this.#run = run;
  }

  /** Rejects with `RemoteAgentError`, whose message never contains a value. */
  async headers(): Promise<Readonly<Record<string, string>>> {
    if (this.#auth === undefined) return {};
    let headers: Headers;
    try {
      const given = typeof this.#auth === "function" ? await this.#auth(this.#run) : this.#auth;
      headers = new Headers(typeof given === "string" ? { authorization: `Bearer ${given}` } : given);
    } catch {
      // The thrown error may contain the value.
      throw new RemoteAgentError(
        "remote_unauthorized",
        "the option auth returned neither a valid token nor valid headers",
      );
    }
    for (const value of headers.values()) {
      for (const secret of [value, ...value.split(" ")])
        if (secret.length >= SHORTEST_SECRET) this.#secrets.add(secret);
    }
    return Object.fromEntries(headers);
  }

  /** Removes the sent values from a received text. */
  hide(text: string): string {
    let hidden = text;
    for (const secret of this.#secrets) hidden = hidden.replaceAll(secret, "[secret:auth]");
    return hidden;
  }

  hiddenError(error: unknown): unknown {
    if (!(error instanceof Error) || this.hide(error.message) === error.message) return error;
    const message = this.hide(error.message);
    if (error instanceof OutcomeUnknownError) return new OutcomeUnknownError(message);
    return new RemoteAgentError(error instanceof RemoteAgentError ? error.code : "remote_protocol", message);
  }
}
