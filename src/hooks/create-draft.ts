import { deepFreeze, describeValue, renderPath, stableStringify, toJson } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import {
  assertToolOf,
  type CallPatch,
  type CallSettings,
  callSettingsRule,
  checkedFilePart,
  type Content,
  contentSchema,
  type HookName,
  type HookPatch,
  type Json,
  LONGEST_CONTENT,
  mergedSettings,
  type Message,
  taken,
  takeText,
} from "../state/index.ts";
import type {
  AddedMessage,
  CallDraftOutcome,
  CallResult,
  DraftOutcome,
  DraftOutcomes,
  HookCall,
  HookDrafts,
  HookViews,
  ReplacingMessage,
} from "./drafts.ts";

/**
 * A draft for one run of a hook: call `createDraft(hook, view)`, run the hook's code with `draft`, then call `outcome()`, which
 * closes the draft. The outcome is data: `added` and `patch` for `hook.applied`; for `beforeEachTool` the fields of the call's
 * gate.
 */
export interface OpenDraft<Name extends HookName> {
  readonly draft: HookDrafts[Name];
  /** The hook's changes. Later changes throw `InvalidInputError`. */
  readonly outcome: () => DraftOutcomes[Name];
}

/** A draft for one run of one hook, with its view; both are deeply frozen. */
export function createDraft<Name extends HookName>(hook: Name, view: HookViews[Name]): OpenDraft<Name> {
  return makers[hook](view);
}

/** Each draft is written out, so that all its methods are visible in one place. */
const makers: { readonly [Name in HookName]: (view: HookViews[Name]) => OpenDraft<Name> } = {
  afterUserInput(view) {
    const changes = new DraftChanges(view.messages, []);
    return opened({ ...view, ...adding(changes), ...rewriting(changes), ...stopping(changes) }, changes);
  },
  beforeLlm(view) {
    const changes = new DraftChanges(view.messages, []);
    const edit: HookDrafts["beforeLlm"]["edit"] = (messageId, content) => changes.edit(messageId, content);
    const remove: HookDrafts["beforeLlm"]["remove"] = (messageId) => changes.remove(messageId);
    const set: HookDrafts["beforeLlm"]["set"] = (settings) => changes.set(settings, view.tools);
    return opened(
      { ...view, ...adding(changes), ...rewriting(changes), ...stopping(changes), edit, remove, set },
      changes,
    );
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

function rewriting(changes: DraftChanges): Pick<HookDrafts["beforeLlm"], "rewrite"> {
  return { rewrite: (messageId, content) => changes.rewrite(messageId, content) };
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

const addableRoles: readonly string[] = ["user", "system", "assistant"] satisfies AddedMessage["role"][];

/**
 * All changes that hooks can make; each draft offers a subset. Owns: the changes of one hook run.
 * Invariants: 1. a change that threw an error is not recorded; 2. nothing changes after `close`.
 */
class DraftChanges {
  readonly #messages: readonly Message[];
  readonly #calls: readonly HookCall[];
  readonly #added: ReplacingMessage[] = [];
  readonly #edited = new Map<string, Content>();
  readonly #removed = new Set<string>();
  readonly #patches = new Map<string, CallPatch>();
  #settings: CallSettings = {};
  #ownCall: Pick<CallDraftOutcome, "arguments" | "denied"> = {};
  #stop: HookPatch["stop"] = null;
  #continueRequested = false;
  #closed = false;

  constructor(messages: readonly Message[], calls: readonly HookCall[]) {
    this.#messages = messages;
    this.#calls = calls;
  }

  add(message: AddedMessage): void {
    this.#assertOpen();
    const given: unknown = message;
    if (typeof given !== "object" || given === null) {
      throw new InvalidInputError(`a hook cannot add ${describeValue(given)}; expected { role, content }`);
    }
    const { role, content } = message;
    if (!addableRoles.includes(role)) {
      const found = typeof role === "string" ? `"${role}"` : describeValue(role);
      throw new InvalidInputError(`a hook cannot add a message with role ${found}; use ${addableRoles.join(", ")}`);
    }
    this.#added.push({ role, content: checkedContent(content) });
  }

  rewrite(messageId: string, content: Content): void {
    this.#assertMessage(messageId);
    const message = this.#messages.find(({ id }) => id === messageId);
    if (message?.role !== "user" || message.origin.startsWith("hook:")) {
      throw new InvalidInputError(
        `message "${messageId}" was not written by a user or a subagent and cannot be rewritten`,
      );
    }
    this.#added.push({ role: "user", content: checkedContent(content), replaces: messageId });
  }

  edit(messageId: string, content: Content): void {
    this.#assertMessage(messageId);
    if (this.#removed.has(messageId)) throw new InvalidInputError(`message "${messageId}" was removed in this draft`);
    this.#edited.set(messageId, checkedContent(content));
  }

  remove(messageId: string): void {
    this.#assertMessage(messageId);
    this.#edited.delete(messageId);
    this.#removed.add(messageId);
  }

  set(given: CallSettings, tools: readonly string[]): void {
    this.#assertOpen();
    const settings = callSettingsRule(given, "draft.set()") as CallSettings;
    assertToolOf(settings, tools, "draft.set(): toolChoice");
    this.#settings = mergedSettings(this.#settings, settings);
  }

  changeArgumentsOf(callId: string, args: object): void {
    this.#assertCall(callId);
    this.#patches.set(callId, { ...this.#patches.get(callId), callId, arguments: argumentsText(args) });
  }

  denyCall(callId: string, reason: string): void {
    this.#assertCall(callId);
    this.#patches.set(callId, { ...this.#patches.get(callId), callId, denied: checkedReason("denies a call", reason) });
  }

  changeArguments(args: object): void {
    this.#assertOpen();
    this.#ownCall = { ...this.#ownCall, arguments: JSON.parse(argumentsText(args)) as Json };
  }

  deny(reason: string): void {
    this.#assertOpen();
    this.#ownCall = { ...this.#ownCall, denied: checkedReason("denies a call", reason) };
  }

  stop(reason: string): void {
    this.#assertOpen();
    const message = checkedReason("stops a turn", reason);
    this.#stop ??= { reason: "stop_requested", message };
  }

  continue(): void {
    this.#assertOpen();
    this.#continueRequested = true;
  }

  close(): DraftOutcome {
    this.#closed = true;
    return {
      added: [...this.#added],
      patch: {
        ...(this.#patches.size > 0 ? { calls: [...this.#patches.values()] } : {}),
        ...(Object.keys(this.#settings).length > 0 ? { settings: this.#settings } : {}),
        edited: [...this.#edited].map(([messageId, content]) => ({ messageId, content })),
        removedMessageIds: [...this.#removed],
        stop: this.#stop,
        continueRequested: this.#continueRequested,
      },
    };
  }

  closeCall(): CallDraftOutcome {
    this.#closed = true;
    return { ...this.#ownCall, stop: this.#stop };
  }

  #assertOpen(): void {
    if (!this.#closed) return;
    throw new InvalidInputError("this draft was committed when its hook returned and cannot be changed any more");
  }

  #assertMessage(messageId: string): void {
    this.#assertOpen();
    if (this.#messages.some(({ id }) => id === messageId)) return;
    throw new InvalidInputError(`the draft has no message "${messageId}"; use an id from draft.messages`);
  }

  #assertCall(callId: string): void {
    this.#assertOpen();
    if (this.#calls.some((call) => call.callId === callId)) return;
    throw new InvalidInputError(`the draft has no call "${callId}"; use an id from draft.calls`);
  }
}

/** Copied, so that later changes to the hook's own object have no effect. */
function checkedContent(content: Content): Content {
  const checked = taken(contentSchema, content, { maxSize: LONGEST_CONTENT });
  if (checked.ok) return filesChecked(checked.value as Content);
  const right = "a text, or a list of text, image and file parts";
  throw new InvalidInputError(
    `the content of a message must be ${right}; it is ${describeValue(content)} (${checked.problem})`,
  );
}

function filesChecked(content: Content): Content {
  if (typeof content === "string" || !content.some(({ type }) => type === "file")) return content;
  const parts = content.map((part, index) => {
    if (part.type !== "file") return part;
    const file = checkedFilePart(part);
    if (file.ok) return file.part;
    throw new InvalidInputError(`the content of a message is wrong: part ${index}: ${file.problem}`);
  });
  return deepFreeze(parts);
}

/** Returns arguments as JSON text. Throws if they are not a JSON object. */
function argumentsText(args: object): string {
  if (typeof args !== "object" || args === null || Array.isArray(args)) {
    throw new InvalidInputError("the arguments of a call must be an object with one member per parameter");
  }
  const copied = toJson(args);
  if (copied.ok) return stableStringify(copied.json);
  const { path, message } = copied.issue;
  throw new InvalidInputError(`the arguments of a call must be JSON: ${renderPath(path)}: ${message}`);
}

/** Reasons are shown to people or models and must not be empty. */
function checkedReason(what: string, reason: string): string {
  if (typeof reason === "string" && reason.trim() !== "") return takeText(reason, "the reason of a hook");
  throw new InvalidInputError(`a hook that ${what} must give a non-empty reason`);
}
