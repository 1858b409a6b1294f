import type { CallPatch } from "../state/index.ts";
import type { HookCall } from "./views.ts";

/**
 * The calls of a round with what hooks changed of them, `patches` in the order of the hooks: the last arguments count,
 * and the first denial stands.
 */
export function patchedCalls(calls: readonly HookCall[], patches: readonly CallPatch[]): HookCall[] {
  return calls.map((call) => {
    let { arguments: text, denied } = call;
    for (const patch of patches) {
      if (patch.callId !== call.callId) continue;
      text = patch.arguments ?? text;
      denied ??= patch.denied;
    }
    return { ...call, arguments: text, ...(denied === undefined ? {} : { denied }) };
  });
}
