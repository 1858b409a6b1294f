import { type ChaosOptions, type ChaosReport, type ChaosScenario, reportOf } from "./scenario.ts";

/**
 * The report of a scenario. A scenario that throws, or leaves an unhandled rejection, counts as one failed operation and
 * one violation.
 */
export async function played(scenario: ChaosScenario, options: ChaosOptions): Promise<ChaosReport> {
  const stray = Promise.withResolvers<never>();
  stray.promise.catch(() => undefined);
  const onStray = (error: unknown): void => stray.reject(error);
  process.on("uncaughtException", onStray);
  process.on("unhandledRejection", onStray);
  try {
    return await Promise.race([scenario.run(options), stray.promise]);
  } catch (error) {
    const words = error instanceof Error ? (error.stack ?? error.message) : String(error);
    const counts = { operations: 1, succeeded: 0, violations: [`it broke off: ${words}`] };
    return reportOf({ name: scenario.name, seed: options.seed }, counts);
  } finally {
    process.off("uncaughtException", onStray);
    process.off("unhandledRejection", onStray);
  }
}
