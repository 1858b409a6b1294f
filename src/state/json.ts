import { z } from "zod";
import type { Json } from "../base/index.ts";

export type { Json } from "../base/index.ts";

export const jsonSchema: z.ZodType<Json> = z.json() as z.ZodType<Json>;
export const jsonObjectSchema = z.record(z.string(), jsonSchema);
/** A JSON object. */
export type JsonObject = { readonly [key: string]: Json };
