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

/** What `getRuntime()` takes beside the key and the function. */
export interface GetRuntimeOptions {
  /**
   * A text or number that changes when the runtime has to be made anew, for instance the time of the last change of the
   * file that defines the agents. A runtime of another version is shut down first; its open turns go on as after a restart.
   * Default: none, so that the runtime stays until it is shut down.
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

/** A development server evaluates modules again and again, and the runtimes outlive that: they belong to the process. */
const made = Symbol.for("troupe.runtimes");

function runtimesOfProcess(): Map<string, Made> {
  const holder = globalThis as { [made]?: Map<string, Made> };
  return (holder[made] ??= new Map());
}

/**
 * The runtime of this process under a key, which `make` creates when there is none: for servers that load a module several
 * times, where a second runtime on the same stores would be refused its agents (`AlreadyOwnedError`). Calls at the same
 * time share one runtime. A `make` that fails is called again the next time, and so is one whose runtime was shut down.
 *
 * Rejects with `InvalidInputError` for an invalid key, function or option, and with what `make` throws.
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
    // Another call has replaced it meanwhile.
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
    `getRuntime(): its function gave ${describeValue(runtime)}; it returns a runtime, as createRuntime() makes it`,
  );
}
