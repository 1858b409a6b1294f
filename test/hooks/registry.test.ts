import { describe, expect, expectTypeOf, test } from "vitest";
import { InvalidInputError } from "../../src/errors/index.ts";
import {
  type Hook,
  type HookDrafts,
  type Hooks,
  hookCountsOf,
  type Plugin,
  registerHooks,
} from "../../src/hooks/index.ts";
import { hookNames, noHooks } from "../../src/state/index.ts";

const hook = () => undefined;
const registering = (hooks: object | undefined, plugins: readonly object[] = []) => {
  return () => registerHooks(hooks as Hooks, plugins as Plugin[]);
};
const named = (name: string): Hook<"afterTools"> => Object.defineProperty(() => undefined, "name", { value: name });

describe("registerHooks", () => {
  test("H1: runs the agent's own first, then each plugin's, each in order", () => {
    const registry = registerHooks({ afterTools: [named("own 0"), named("own 1")] }, [
      { name: "a", hooks: { afterTools: named("a 0"), beforeLlm: hook } },
      { name: "tools-only", tools: [] },
      { name: "b", hooks: { afterTools: [named("b 0")] } },
    ]);
    expect(registry.afterTools.map(({ plugin, hook }) => [plugin, hook.name])).toEqual([
      ["agent", "own 0"],
      ["agent", "own 1"],
      ["a", "a 0"],
      ["b", "b 0"],
    ]);
    expect(registry.beforeLlm.map(({ plugin }) => plugin)).toEqual(["a"]);
  });

  test("all nine names, each counted separately", () => {
    for (const [index, name] of hookNames.entries()) {
      const hooks = { [name]: Array.from({ length: index + 1 }, () => hook) };
      const registry = registerHooks(hooks, [{ name: "more", hooks: { [name]: hook } }]);
      expect(Object.keys(registry)).toEqual([...hookNames]);
      expect(hookCountsOf(registry)).toEqual({ ...noHooks, [name]: index + 2 });
    }
    expect(hookCountsOf(registerHooks(undefined, []))).toEqual(noHooks);
    expect(hookCountsOf(registerHooks({ onError: undefined, onComplete: [] }, []))).toEqual(noHooks);
  });

  test("a hook gets the draft of its name", () => {
    expectTypeOf<Parameters<Hook<"onError">>[0]>().toEqualTypeOf<HookDrafts["onError"]>();
    const hooks: Hooks = {
      beforeTools: (draft) => void expectTypeOf(draft).toEqualTypeOf<HookDrafts["beforeTools"]>(),
      onComplete: [(draft) => void expectTypeOf(draft).toEqualTypeOf<HookDrafts["onComplete"]>()],
    };
    expect(hookCountsOf(registerHooks(hooks, []))).toMatchObject({ beforeTools: 1, onComplete: 1 });
    expectTypeOf<keyof Hooks>().toEqualTypeOf<keyof HookDrafts>();
  });

  test("refuses unknown hooks and lists the known ones", () => {
    expect(registering({ afterTool: hook })).toThrow(
      new InvalidInputError(
        `the agent's own hooks: unknown hook "afterTool": did you mean afterTools? the hooks are ${hookNames.join(", ")}`,
      ),
    );
    expect(registering(undefined, [{ name: "memo", hooks: { constructor: hook } }])).toThrow(
      'plugin "memo": unknown hook "constructor"',
    );
    expect(registering([hook])).toThrow("hooks must be an object whose keys are names of hooks");
  });

  test("refuses values that are not functions", () => {
    const message = "the agent's own hooks: beforeLlm must be a function or a list of functions";
    for (const beforeLlm of [null, 7, "code", {}, [hook, undefined], [[hook]]]) {
      expect(registering({ beforeLlm })).toThrow(new InvalidInputError(message));
    }
    expect(registering(undefined, [{ name: "memo", hooks: hook }])).toThrow('plugin "memo": hooks must be an object');
  });

  test("refuses plugins without a unique name", () => {
    expect(registering(undefined, [{ name: "memo" }, { name: "memo" }])).toThrow(
      new InvalidInputError('two plugins are named "memo"; rename one of them'),
    );
    expect(registering(undefined, [{ name: "agent" }])).toThrow(
      new InvalidInputError(
        'plugins[0]: name: a plugin cannot be named "agent": that name is reserved for the agent\'s own hooks',
      ),
    );
    for (const name of [undefined, "", "a b", "x".repeat(65)]) {
      expect(registering(undefined, [{ name, hooks: {} }])).toThrow(/^plugins\[0\]: name: a plugin cannot be named/);
    }
  });
});
