import { defineConfig } from "vitest/config";
import { sourceCondition } from "./scripts/run-command.ts";

export default defineConfig({
  // Tests and examples write `import "troupe"` as a user does and get src/.
  ssr: { resolve: { conditions: [sourceCondition, "module", "node", "development|production"] } },
  test: {
    include: ["test/**/*.test.ts"],
    setupFiles: ["test/support/fail-on-console.ts", "test/support/fixed-seed.ts"],
    pool: "forks",
    // By default one core is left free, which on a small machine is half of it.
    maxWorkers: "100%",
    testTimeout: 60_000,
    hookTimeout: 60_000,
    env: { OPENAI_API_KEY: "", OPENAI_BASE_URL: "" },
  },
});
