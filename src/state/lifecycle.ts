import { z } from "zod";

export const lifecycleSchema = z.enum(["created", "starting", "ready", "busy", "paused", "failed", "shutdown"]);
export type Lifecycle = z.infer<typeof lifecycleSchema>;
