import { PromptMemory } from "../../actors/index.ts";
import type { Entry } from "../../state/index.ts";

/** What effects of one live agent leave for one another, beside the journal; it is of no use to the next owner. */
export class EffectNotes {
  readonly prompts = new PromptMemory();
  readonly #cuts = new Map<string, number>();
  readonly #dropped = new Set<string>();
  readonly #versions = new Map<string, number>();

  noteCut(requestKey: string, outputTokens: number): void {
    this.#cuts.set(requestKey, outputTokens);
  }

  takeCut(requestKey: string): number | undefined {
    const cut = this.#cuts.get(requestKey);
    this.#cuts.delete(requestKey);
    return cut;
  }

  drop(requestKey: string): void {
    this.#dropped.add(requestKey);
  }

  takeDropped(requestKey: string): boolean {
    return this.#dropped.delete(requestKey);
  }

  /** The commit gives artifacts their versions. */
  noteCommitted(entries: readonly Entry[]): void {
    for (const entry of entries) {
      if (entry.type === "artifact.saved") this.#versions.set(entry.artifactId, entry.version ?? 1);
    }
  }

  versionOf(artifactId: string): number {
    return this.#versions.get(artifactId) ?? 1;
  }
}
