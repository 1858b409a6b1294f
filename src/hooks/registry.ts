import {
  anyRule,
  deepFreeze,
  describeValue,
  functionRule,
  type OptionsSchema,
  listRule,
  nameRule,
  nearestName,
  optionsOf,
} from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { type HookCounts, type HookName, hookNames } from "../state/index.ts";
import { registerGuards } from "./guards.ts";
import { inputHooks } from "./input-hooks.ts";
import type { Hook, Hooks, OneOrMore, Plugin, RegisteredForget } from "./hooks.ts";

/** The name under which an agent's own hooks are registered. */
const ownName = "agent";

export interface RegisteredHook<Code> {
  readonly plugin: string;
  readonly hook: Code;
}

/** For each hook name its hooks in execution order. */
export type HookRegistry = { readonly [Name in HookName]: readonly RegisteredHook<Hook<Name>>[] };

interface Bundle {
  readonly name: string;
  readonly hooks: Hooks;
}

/**
 * All hooks in registration order: the agent's own first, under the plugin name "agent", then those of each plugin. Throws
 * `InvalidInputError` for unknown hook names, hooks that are not functions, and plugins without a unique name.
 */
export function registerHooks(own: Hooks | undefined, given: readonly Plugin[]): HookRegistry {
  const plugins = pluginsOf(given);
  assertNames(plugins);
  const guards = registerGuards(plugins).flatMap(({ plugin, guards: own }) => {
    const hooks = inputHooks(plugin, own);
    return hooks === undefined ? [] : [{ name: plugin, hooks }];
  });
  // Guards of inputs run before all other hooks, so that these see what the guards let pass.
  const bundles = [
    ...guards,
    { name: ownName, hooks: own ?? {} },
    ...plugins.map(({ name, hooks = {} }) => ({ name, hooks })),
  ];
  for (const bundle of bundles) assertHooks(bundle);
  return Object.freeze({
    afterUserInput: registered(bundles, "afterUserInput"),
    beforeLlm: registered(bundles, "beforeLlm"),
    afterLlm: registered(bundles, "afterLlm"),
    beforeTools: registered(bundles, "beforeTools"),
    beforeEachTool: registered(bundles, "beforeEachTool"),
    afterEachTool: registered(bundles, "afterEachTool"),
    onError: registered(bundles, "onError"),
    afterTools: registered(bundles, "afterTools"),
    onComplete: registered(bundles, "onComplete"),
  });
}

/** How many hooks there are of each name. */
export function hookCountsOf(registry: HookRegistry): HookCounts {
  return {
    afterUserInput: registry.afterUserInput.length,
    beforeLlm: registry.beforeLlm.length,
    afterLlm: registry.afterLlm.length,
    beforeTools: registry.beforeTools.length,
    beforeEachTool: registry.beforeEachTool.length,
    afterEachTool: registry.afterEachTool.length,
    onError: registry.onError.length,
    afterTools: registry.afterTools.length,
    onComplete: registry.onComplete.length,
  };
}

/** Copies plugins. Throws `InvalidInputError` for values that are not plugins, and for invalid names. */
export function pluginsOf(plugins: readonly unknown[]): readonly Plugin[] {
  return plugins.map((plugin, index) => optionsOf<Plugin>(plugin ?? null, `plugins[${index}]`, pluginOptionsSchema));
}

const pluginOptionsSchema: OptionsSchema<Plugin> = {
  rules: {
    name: pluginName,
    hooks: anyRule,
    instructions: nameRule,
    guards: anyRule,
    tools: listRule("a list of tools", anyRule),
    forget: functionRule,
  },
  needed: ["name"],
  instead: Object.fromEntries(hookNames.map((name) => [name, `hooks: { ${name} }`])),
  takesOwnFields: true,
};

/** The plugins that keep data of their own. `given` has the plugins of which `plugins` are checked copies. */
export function registerForgets(given: readonly Plugin[], plugins: readonly Plugin[]): readonly RegisteredForget[] {
  return Object.freeze(
    plugins.flatMap(({ name, forget }, index) => {
      const source = given[index];
      if (!forget || !source) return [];
      return [Object.freeze({ plugin: name, source, forget: forget.bind(source) })];
    }),
  );
}

function pluginName(name: unknown, where: string): string {
  if (name === ownName) {
    throw new InvalidInputError(
      `${where}: a plugin cannot be named "${ownName}": that name is reserved for the agent's own hooks`,
    );
  }
  if (typeof name === "string" && /^[A-Za-z0-9_.-]{1,64}$/.test(name)) return name;
  const shown = typeof name === "string" ? JSON.stringify(name.slice(0, 80)) : describeValue(name);
  throw new InvalidInputError(
    `${where}: a plugin cannot be named ${shown}: use 1 to 64 letters, digits, "_", "-" and "."`,
  );
}

function registered<Name extends HookName>(
  bundles: readonly Bundle[],
  name: Name,
): readonly RegisteredHook<Hook<Name>>[] {
  return deepFreeze(
    bundles.flatMap(({ name: plugin, hooks }) =>
      listOf(hooks[name] as OneOrMore<Name> | undefined).map((hook) => ({ plugin, hook })),
    ),
  );
}

function listOf<Name extends HookName>(hooks: OneOrMore<Name> | undefined): readonly Hook<Name>[] {
  if (hooks === undefined) return [];
  return typeof hooks === "function" ? [hooks] : hooks;
}

function assertNames(plugins: readonly Plugin[]): void {
  const seen = new Set<string>();
  for (const { name } of plugins) {
    if (seen.has(name)) throw new InvalidInputError(`two plugins are named "${name}"; rename one of them`);
    seen.add(name);
  }
}

function assertHooks({ name: plugin, hooks }: Bundle): void {
  const whose = plugin === ownName ? "the agent's own hooks" : `plugin "${plugin}"`;
  if (typeof hooks !== "object" || hooks === null || Array.isArray(hooks)) {
    throw new InvalidInputError(`${whose}: hooks must be an object whose keys are names of hooks`);
  }
  for (const [name, value] of Object.entries(hooks) as [string, unknown][]) {
    if (!(hookNames as readonly string[]).includes(name)) {
      const meant = nearestName(name, hookNames);
      throw new InvalidInputError(
        `${whose}: unknown hook "${name.slice(0, 64)}"${meant === undefined ? ";" : `: did you mean ${meant}?`} the hooks are ${hookNames.join(", ")}`,
      );
    }
    if (value === undefined || [value].flat(1).every((one) => typeof one === "function")) continue;
    throw new InvalidInputError(`${whose}: ${name} must be a function or a list of functions`);
  }
}
