import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";

export const lifecycleSchema = z.enum(["created", "starting", "ready", "busy", "paused", "failed", "shutdown"]);
export type Lifecycle = DeepReadonly<z.infer<typeof lifecycleSchema>>;
