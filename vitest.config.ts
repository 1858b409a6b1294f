import { availableParallelism } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { repositoryRoot, sourceCondition } from "./scripts/run-command.ts";

/** What takes longest, longest first: begun at the end, one of them would keep one core busy and leave the others idle. */
const longest = [
  "chaos/redis.full",
  "chaos/postgres.full",
  "e2e/watched-processes",
  "site/built-site",
  "browser/site",
  "browser/page",
  "readme",
  "mcp/conformance/conformance",
  "e2e/cli-serve",
  "browser/served",
  "e2e/cli-worker",
  "e2e/cli-requests",
  "chaos/spending.full",
  "chaos/people.full",
  "e2e/cli-redis",
  "e2e/cli-ask",
  "e2e/cli-decisions",
  "stores/redis-deployments.full",
  "chaos/f2",
  "e2e/cli-run",
  "e2e/cli-store",
  "stores/redis",
  "stores/postgres",
  "runtime/ports-foreign",
  "runtime/spawn-lines",
  "runtime/faults-size",
  "runtime/marks-pairs",
  "runtime/outward-values",
  "runtime/damaged-elsewhere",
  "runtime/faults-injection",
  "runtime/legal-interrupts",
  "runtime/restart-crash",
  "runtime/checked-options",
  "runtime/edges-trees",
  "runtime/subagents-crash",
  "machines/live-fold",
].map((name) => join(repositoryRoot, "test", `${name}.test.ts`));

const together = "together";

/** Those with a process to themselves come first, so that the shared processes need not be started anew in between. */
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
 * Files that need a process to themselves. All others run one after the other in a few processes, which spares each of
 * them a start of Node and the import of the sources.
 */
const alone = [
  // Its runtimes give up in mid-work, and go on with it after the test.
  "test/runtime/redis-away-leaving.test.ts",
  // It expects a warning that a process gives once.
  "test/stores/redis-boot.test.ts",
  // It counts all live agents of its process, and runtimes that other tests have killed may still make some.
  "test/runtime/passive-agents.test.ts",
  // The environment is read once.
  "test/model/http-proxies.test.ts",
];

/** What is shown in a real browser (test/support/browser.ts). */
const inBrowser = "test/browser/**/*.test.ts";

const shared = {
  setupFiles: ["test/support/fail-on-console.ts", "test/support/fixed-seed.ts"],
  // What takes 20 s alone takes three times as long where two other runs are under way.
  testTimeout: 180_000,
  hookTimeout: 180_000,
  // What a test waits for comes when the machine has time for it. One second, which is the default, is none beside other work.
  expect: { poll: { timeout: 30_000 } },
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
      // Two more than there are cores, because many tests wait: for a lease to run out, or for a process that they started.
      maxWorkers: availableParallelism() + 2,
      sequence: { sequencer: LongestFirst },
      globalSetup: ["test/support/built-page.ts"],
      projects: [
        {
          extends: true,
          test: {
            ...test,
            name: together,
            include: ["test/**/*.test.ts"],
            exclude: [...alone, inBrowser, ...left],
            isolate: false,
          },
        },
        { extends: true, test: { ...test, name: "alone", include: alone } },
        { extends: true, test: { ...test, name: "browser", include: [inBrowser], exclude: left, isolate: false } },
      ],
    },
  };
});
