import type { AskedRequest } from "./call-in-parts.ts";
import type { DataSubject } from "./data-subject.ts";
import type { RunContext } from "./run-context.ts";

/** A skill that a source lists. */
export interface ListedSkill {
  /** 1 to 64 of `a-z`, `0-9` and single hyphens between them. */
  readonly name: string;
  /** What the skill does and when to use it, 1 to 1,024 characters. */
  readonly description: string;
}

/** The instructions of a skill, or one of its files. */
export interface SkillContent {
  /** Up to 2,000,000 characters, in UTF-16 units. */
  readonly text: string;
  /** The files of the skill besides `SKILL.md`, as `load` takes them. Default: none. */
  readonly files?: readonly string[] | undefined;
}

/**
 * Skills from outside of this program, such as `skills` of `mcp()`. Their texts are untrusted: the model reads them as results of a tool,
 * marked with their source. Methods may be called at the same time.
 */
export interface SkillSource {
  /** Begins the names of its skills for the model, as in `docs__refunds`: 1 to 32 letters, digits, `_` and `-`. */
  readonly name: string;
  /** All skills, in any order. Called once. Rejects if they cannot be listed. */
  list(): Promise<readonly ListedSkill[]>;
  /**
   * Loads the instructions of a skill, or one of its files. Runs in a call of `load_skill`, so it may ask with `run.ask()`. Rejects with
   * words for the model.
   * @param skill One that `list()` has returned.
   * @param file A file of the skill; `undefined` for its instructions, without the head of `SKILL.md`.
   */
  load(skill: ListedSkill, file: string | undefined, run: RunContext): Promise<SkillContent | AskedRequest>;
  /** Keeps connections until the returned function is called, as runtimes do. Default: there are none. */
  holdConnections?(): () => Promise<void>;
  /** Removes what it keeps of an owner or agent who is deleted, as `forget` of plugins does. Default: it keeps nothing. */
  forget?(subject: DataSubject): void | Promise<void>;
}
