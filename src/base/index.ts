export * from "./abort.ts";
export * from "./backoff.ts";
export * from "./clock.ts";
export * from "./deferred.ts";
export * from "./fault-points.ts";
export * from "./ids.ts";
export * from "./safe-json.ts";
export * from "./timer-queue.ts";
