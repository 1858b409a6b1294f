import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { repositoryRoot, sourceCondition } from "./scripts/run-command.ts";

/** What takes longest, longest first: begun at the end, one of them would keep one core busy and leave the others idle. */
const longest = [
  "e2e/cli-worker",
  "e2e/cli-requests",
  "chaos/redis",
  "readme",
  "e2e/cli-redis",
  "chaos/spending",
  "e2e/cli-ask",
  "e2e/cli-decisions",
  "stores/redis",
  "runtime/edges-trees",
  "runtime/edges-turns",
  "runtime/restart-crash",
  "runtime/subagents-crash",
  "runtime/legal-interrupts",
].map((name) => join(repositoryRoot, "test", `${name}.test.ts`));

const together = "together";

/** Those that share a process come last, so that its workers need not be begun anew in between. */
function rankOf({ moduleId, project }: TestSpecification): number {
  const index = longest.indexOf(moduleId);
  return (index < 0 ? longest.length : index) + (project.name === together ? longest.length + 1 : 0);
}

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((one, other) => rankOf(one) - rankOf(other));
  }
}

/**
 * Files that run one after the other in the same process, which spares each of them the import of the sources: what they open is
 * closed after each test, and nothing of theirs goes on after them. All others have a process to themselves.
 */
const sharing = [
  "test/{actors,base,budget,context,hooks,machines,model,state,support,telemetry,testing,tools}/**/*.test.ts",
  "test/cli/{ask,chat,inline,job,requests,view}/**/*.test.ts",
  "test/runtime/{abort,agent,clear,follow,hooks,lifecycle,models,overview,pause,requests,subagents,timers,tools,turn}*.test.ts",
];

const shared = {
  setupFiles: ["test/support/fail-on-console.ts", "test/support/fixed-seed.ts"],
  testTimeout: 60_000,
  hookTimeout: 60_000,
  env: {
    OPENAI_API_KEY: "",
    OPENAI_BASE_URL: "",
    // Programs that tests start many times are compiled once.
    NODE_COMPILE_CACHE: join(repositoryRoot, "node_modules", ".cache", "compiled-tests"),
  },
};

export default defineConfig({
  // Tests and examples write `import "troupe"` as a user does and get src/.
  ssr: { resolve: { conditions: [sourceCondition, "module", "node", "development|production"] } },
  test: {
    pool: "forks",
    // By default one core is left free, which on a small machine is half of it.
    maxWorkers: "100%",
    sequence: { sequencer: LongestFirst },
    projects: [
      { extends: true, test: { ...shared, name: "alone", include: ["test/**/*.test.ts"], exclude: sharing } },
      { extends: true, test: { ...shared, name: together, include: sharing, isolate: false } },
    ],
  },
});
