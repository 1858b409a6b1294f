import { deepFreeze } from "../base/index.ts";
import type { HookName } from "../state/index.ts";
import { DraftChanges } from "./changes.ts";
import type { DraftOutcomes, HookDrafts } from "./drafts.ts";
import type { CallResult, HookViews } from "./views.ts";

/**
 * A draft under way, for whoever runs the hook: `createDraft(hook, view)`, the hook's code with `draft`, then `outcome()`,
 * which closes the draft. The outcome is data: `added` and `patch` for `hook.applied`; for `beforeEachTool` what the
 * call's gate takes in.
 */
export interface OpenDraft<Name extends HookName> {
  readonly draft: HookDrafts[Name];
  /** What the hook changed. From here on every change throws `InvalidInputError`. */
  readonly outcome: () => DraftOutcomes[Name];
}

/** A draft for one run of one hook over what it gets to see: frozen, to the last field. */
export function createDraft<Name extends HookName>(hook: Name, view: HookViews[Name]): OpenDraft<Name> {
  return makers[hook](view);
}

/** Each draft is written out: what it may do is here and nowhere else. */
const makers: { readonly [Name in HookName]: (view: HookViews[Name]) => OpenDraft<Name> } = {
  afterUserInput(view) {
    const changes = new DraftChanges(view.messages, []);
    return opened({ ...view, ...adding(changes), ...stopping(changes) }, changes);
  },
  beforeLlm(view) {
    const changes = new DraftChanges(view.messages, []);
    const edit: HookDrafts["beforeLlm"]["edit"] = (messageId, content) => changes.edit(messageId, content);
    const remove: HookDrafts["beforeLlm"]["remove"] = (messageId) => changes.remove(messageId);
    return opened({ ...view, ...adding(changes), ...stopping(changes), edit, remove }, changes);
  },
  afterLlm(view) {
    const changes = new DraftChanges(view.messages, view.calls);
    const parts = { ...adding(changes), ...changingCalls(changes), ...stopping(changes), ...continuing(changes) };
    return opened({ ...view, ...parts }, changes);
  },
  beforeTools(view) {
    const changes = new DraftChanges(view.messages, view.calls);
    return opened({ ...view, ...adding(changes), ...changingCalls(changes), ...stopping(changes) }, changes);
  },
  beforeEachTool({ call }) {
    const changes = new DraftChanges([], []);
    const draft: HookDrafts["beforeEachTool"] = {
      call,
      ...stopping(changes),
      changeArguments: (args) => changes.changeArguments(args),
      deny: (reason) => changes.deny(reason),
    };
    deepFreeze(draft);
    return { draft, outcome: () => changes.closeCall() };
  },
  afterEachTool: reviewing,
  onError: reviewing,
  afterTools(view) {
    const changes = new DraftChanges(view.messages, []);
    return opened({ ...view, ...adding(changes), ...stopping(changes), ...continuing(changes) }, changes);
  },
  onComplete(view) {
    const changes = new DraftChanges(view.messages, []);
    return opened({ ...view, ...adding(changes) }, changes);
  },
};

function reviewing(result: CallResult) {
  const changes = new DraftChanges([], []);
  return opened({ call: result.call, result, ...stopping(changes) }, changes);
}

function opened<Draft extends object>(draft: Draft, changes: DraftChanges) {
  deepFreeze(draft);
  return { draft, outcome: () => changes.close() };
}

function adding(changes: DraftChanges): Pick<HookDrafts["onComplete"], "add"> {
  return { add: (message) => changes.add(message) };
}

function stopping(changes: DraftChanges): Pick<HookDrafts["beforeLlm"], "stop"> {
  return { stop: (reason) => changes.stop(reason) };
}

function continuing(changes: DraftChanges): Pick<HookDrafts["afterTools"], "continue"> {
  return { continue: () => changes.continue() };
}

function changingCalls(changes: DraftChanges): Pick<HookDrafts["beforeTools"], "changeArguments" | "deny"> {
  return {
    changeArguments: (callId, args) => changes.changeArgumentsOf(callId, args),
    deny: (callId, reason) => changes.denyCall(callId, reason),
  };
}
