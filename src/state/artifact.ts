import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";

/** Something an agent made or a tool returned that is too large for the conversation. */
export const artifactSchema = z.object({
  artifactId: z.string(),
  name: z.string(),
  /** Counts from 1 over the artifacts of one name. */
  version: z.number().int().positive(),
  contentType: z.string(),
  /** UTF-8 bytes. */
  size: z.number().int().nonnegative(),
  createdAt: z.number().int(),
  content: z.string(),
});
export type Artifact = DeepReadonly<z.infer<typeof artifactSchema>>;
