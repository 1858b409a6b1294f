import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";

/**
 * What may be done with a tool call whose outcome is not known.
 * - `none`: no effect outside; repeat freely.
 * - `keyed`: repeat with the same `idempotencyKey`; the receiver makes sure that it takes effect once.
 * - `once`: never repeated; a call that was cut after its start has an unknown outcome.
 */
export const effectClassSchema = z.enum(["none", "keyed", "once"]);
export type EffectClass = DeepReadonly<z.infer<typeof effectClassSchema>>;
