import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { toolTextsOf } from "../support/journal-probes.ts";
import { callerOf, connected } from "./served-desk.ts";

function toolsChangedWarnings(): string[] {
  const warnings: string[] = [];
  const spy = vi.spyOn(process, "emitWarning").mockImplementation((warning, options) => {
    if (typeof options === "object" && options.code === "TROUPE_MCP_TOOLS_CHANGED") warnings.push(String(warning));
  });
  onTestFinished(() => spy.mockRestore());
  return warnings;
}

test.each(["legacy", "modern"])(
  "a server of the %s era that reports changes: only a tool that differs is a warning, and only the first time",
  { timeout: 60_000 },
  async (era) => {
    const warnings = toolsChangedWarnings();
    const args = [join(import.meta.dirname, "changing-server.ts"), era];
    const { tools } = await connected({ name: "till", command: process.execPath, args });
    const pay = tools.find(({ name }) => name === "till__pay");

    // The server answers in order: with the second result, the list after the first report was compared.
    for (const _ of ["first", "second"]) {
      const { agent } = await callerOf(tools, [{ name: "till__refresh" }]);
      await agent.executeTurn("go").result;
      expect(await toolTextsOf(agent)).toEqual(["refreshed"]);
    }
    expect(warnings).toEqual([]);

    const { agent } = await callerOf(tools, [{ name: "till__change" }]);
    await agent.executeTurn("go").result;
    await expect.poll(() => warnings, { timeout: 20_000 }).toHaveLength(1);
    expect(warnings[0]).toMatch(/"till" has changed its tools: "pay"; this process keeps those that it has read/);
    expect(pay?.description).toBe("Pays.");
    await agent.executeTurn("again").result;
    expect(warnings).toHaveLength(1);
  },
);
