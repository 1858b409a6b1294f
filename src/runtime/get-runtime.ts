import {
  describeValue,
  type OptionsSchema,
  functionRule,
  hasMethods,
  nameRule,
  optionsOf,
  ruleOf,
} from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { Runtime } from "./api/runtime-types.ts";

/** Options of `getRuntime()` besides the key and the function. */
export interface GetRuntimeOptions {
  /**
   * A text or number that changes when the runtime must be created again, for instance the modification time of the file that
   * defines the agents. A runtime of another version is shut down first; its open turns continue as after a restart. Default:
   * none; the runtime stays until it is shut down.
   */
  readonly version?: string | number | undefined;
}

const getRuntimeOptionsSchema: OptionsSchema<GetRuntimeOptions> = {
  rules: {
    version: ruleOf("a text or a number", (value) => typeof value === "string" || Number.isFinite(value)),
  },
};

interface Made {
  readonly version: GetRuntimeOptions["version"];
  readonly runtime: Promise<Runtime>;
}

/** A development server evaluates modules repeatedly; the runtimes belong to the process, so that they outlive this. */
const made = Symbol.for("troupe.runtimes");

function runtimesOfProcess(): Map<string, Made> {
  const holder = globalThis as { [made]?: Map<string, Made> };
  return (holder[made] ??= new Map());
}

/**
 * Returns the runtime of this process for a key, and creates it with `make` if there is none: for servers that load a module
 * several times, where the agents of a second runtime on the same stores would be refused (`AlreadyOwnedError`). Concurrent calls
 * share one runtime. `make` is called again after it has failed, and after its runtime was shut down.
 *
 * Rejects with `InvalidInputError` for an invalid key, function or option, and with errors thrown by `make`.
 */
export async function getRuntime(
  key: string,
  make: () => Runtime | Promise<Runtime>,
  given?: GetRuntimeOptions,
): Promise<Runtime> {
  nameRule(key, "getRuntime(): its key");
  functionRule(make, "getRuntime(): its function");
  const { version } = optionsOf<GetRuntimeOptions>(given, "getRuntime()", getRuntimeOptionsSchema);
  const runtimes = runtimesOfProcess();
  const known = runtimes.get(key);
  if (known !== undefined && known.version === version) {
    const runtime = await known.runtime;
    if (runtime.isOpen) return runtime;
    // Another call has replaced the runtime meanwhile.
    if (runtimes.get(key) !== known) return await getRuntime(key, make, given);
  }
  const entry: Made = { version, runtime: replaced(known, make) };
  runtimes.set(key, entry);
  try {
    return await entry.runtime;
  } catch (error) {
    if (runtimes.get(key) === entry) runtimes.delete(key);
    throw error;
  }
}

async function replaced(known: Made | undefined, make: () => Runtime | Promise<Runtime>): Promise<Runtime> {
  const former = await known?.runtime.catch(() => undefined);
  await former?.shutdown();
  const runtime: unknown = await make();
  if (hasMethods(runtime, ["agent", "shutdown"])) return runtime as Runtime;
  throw new InvalidInputError(
    `getRuntime(): its function returned ${describeValue(runtime)}; expected a runtime made by createRuntime()`,
  );
}
