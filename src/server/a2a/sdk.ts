import type * as Core from "@a2a-js/sdk";
import type * as Legacy from "@a2a-js/sdk/compat/v0_3/server";
import type * as Errors from "@a2a-js/sdk/errors";
import type * as Server from "@a2a-js/sdk/server";
import { optionalPackage } from "../../base/index.ts";

/** The used exports of the official package: codecs, errors, and the layer for protocol version 0.3. */
export interface Sdk {
  readonly codecs: typeof Core;
  readonly errors: typeof Errors;
  /** Loaded by the first request of a client that speaks 0.3. */
  legacy(): Promise<typeof Legacy & Pick<typeof Server, "ServerCallContext">>;
}

/** Loads the package once. Rejects with `UnsupportedError` if it is not installed. */
export const loadSdk = optionalPackage(importSdk, 'A2A needs the package "@a2a-js/sdk": npm install @a2a-js/sdk');

async function importSdk(): Promise<Sdk> {
  const [codecs, errors] = await Promise.all([import("@a2a-js/sdk"), import("@a2a-js/sdk/errors")]);
  return {
    codecs,
    errors,
    legacy: async () => {
      const [compat, { ServerCallContext }] = await Promise.all([
        import("@a2a-js/sdk/compat/v0_3/server"),
        import("@a2a-js/sdk/server"),
      ]);
      return { ...compat, ServerCallContext };
    },
  };
}
