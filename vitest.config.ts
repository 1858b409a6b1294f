import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { repositoryRoot, sourceCondition } from "./scripts/run-command.ts";

/** What takes longest, longest first: begun at the end, one of them would keep one core busy and leave the others idle. */
const longest = [
  "chaos/redis.full",
  "readme",
  "e2e/cli-worker",
  "e2e/cli-requests",
  "chaos/spending",
  "chaos/people",
  "e2e/cli-redis",
  "runtime/faults-size",
  "e2e/cli-ask",
  "e2e/cli-decisions",
  "stores/redis-other-ways.full",
  "stores/redis",
  "runtime/marks-pairs",
  "runtime/edges-trees",
  "runtime/edges-turns",
  "runtime/faults-injection",
  "runtime/legal-interrupts",
  "runtime/restart-crash",
  "runtime/door-options",
  "runtime/subagents-crash",
  "machines/live-fold",
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
  "test/{actors,base,budget,context,demo,hooks,machines,model,state,support,telemetry,testing,tools}/**/*.test.ts",
  "test/agents/*.test.ts",
  "test/architecture/{annotations,door,imports,lock-file,machine-walk,machines}.test.ts",
  "test/chaos/{*checks,played,recovery}.test.ts",
  "test/cli/{ask,chat,inline,job,requests,view}/**/*.test.ts",
  "test/cli/worker/{definitions,metrics-text,queue-plan}.test.ts",
  "test/queues/{envelope,local,local-random}.test.ts",
  "test/stores/{mark-rules,memory,steady-time}.test.ts",
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

/** The full run has everything, the quick one no files `*.full.test.ts`; in the others `test/support/full.ts` tells them apart. */
const fullMode = "full";
const onlyInFull = ["test/**/*.full.test.ts"];

export default defineConfig(({ mode }) => {
  const isFull = mode === fullMode || process.env["TROUPE_FULL"] === "1";
  const test = { ...shared, env: { ...shared.env, TROUPE_FULL: isFull ? "1" : "" } };
  const left = isFull ? [] : onlyInFull;
  return {
    // Tests and examples write `import "troupe"` as a user does and get src/.
    ssr: { resolve: { conditions: [sourceCondition, "node", "development|production"] } },
    test: {
      pool: "forks",
      // The sources need no transformation: Node reads them as they are, and keeps them compiled for the next process.
      server: { deps: { external: [/\/src\/.*\.ts$/] } },
      execArgv: [`--conditions=${sourceCondition}`],
      // By default one core is left free, which on a small machine is half of it.
      maxWorkers: "100%",
      sequence: { sequencer: LongestFirst },
      projects: [
        {
          extends: true,
          test: { ...test, name: "alone", include: ["test/**/*.test.ts"], exclude: [...sharing, ...left] },
        },
        { extends: true, test: { ...test, name: together, include: sharing, exclude: left, isolate: false } },
      ],
    },
  };
});
