import type { HookContext, HookDrafts, HookName, Hooks } from "../../src/index.ts";
import type { HookDeed } from "./random-turns.ts";
import { hooksNamed, type Life, never, type RandomWorld } from "./random-world.ts";

/** The hooks of a plan; each follows its plan as far as its hook point allows. */
export function randomHooks(world: RandomWorld, life: Life): Hooks {
  const list = <Name extends HookName>(name: Name) =>
    hooksNamed(world.plan, name).map((index) => async (draft: HookDrafts[Name], run: HookContext): Promise<void> => {
      if (life.isOver) return await never;
      const does = world.hookDeed(index);
      await world.pass("hook", world.plan.hooks[index]?.loops ?? 0);
      if (life.isOver) return await never;
      if (does === "throw") throw new Error("the hook broke");
      if (does === "generate") await run.generate({ messages: [{ role: "user", content: "Judge." }] });
      else change(does, draft, world);
    });
  return {
    afterUserInput: list("afterUserInput"),
    beforeLlm: list("beforeLlm"),
    afterLlm: list("afterLlm"),
    beforeTools: list("beforeTools"),
    beforeEachTool: list("beforeEachTool"),
    afterEachTool: list("afterEachTool"),
    onError: list("onError"),
    afterTools: list("afterTools"),
    onComplete: list("onComplete"),
  };
}

const rightArguments = { does: "succeed", loops: 1 };

function change(does: HookDeed, draft: HookDrafts[HookName], world: RandomWorld): void {
  const message = "messages" in draft ? draft.messages[world.number(draft.messages.length)] : undefined;
  const call = "calls" in draft ? draft.calls[world.number(draft.calls.length)] : undefined;
  if (does.startsWith("add") && "add" in draft) {
    const role = does === "add system" ? "system" : does === "add assistant" ? "assistant" : "user";
    draft.add({ role, content: "added" });
    if (does === "add two") draft.add({ role: "assistant", content: "added too" });
  }
  if (does === "edit" && "edit" in draft && message) draft.edit(message.id, "edited");
  if (does === "remove" && "remove" in draft && message) draft.remove(message.id);
  if (does === "change" && "changeArguments" in draft) {
    if (!("calls" in draft)) draft.changeArguments(rightArguments);
    else if (call) draft.changeArguments(call.callId, rightArguments);
  }
  if (does === "deny" && "deny" in draft) {
    if (!("calls" in draft)) draft.deny("not now");
    else if (call) draft.deny(call.callId, "not now");
  }
  if (does === "continue" && "continue" in draft) draft.continue();
  if (does === "stop" && "stop" in draft) draft.stop("enough");
}
